# svod_literal(VARIABLE TEXT): TEXT as C++. It is cut into pieces that the compiler joins, since a literal has a most
# length.
function(svod_literal variable text)
  string(LENGTH "${text}" length)
  set(out)
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8000 piece)
    string(APPEND out "R\"~~~(${piece})~~~\"\n")
    math(EXPR at "${at} + 8000")
  endwhile()
  set(${variable} "${out}" PARENT_SCOPE)
endfunction()
