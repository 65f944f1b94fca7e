# cmake -DINPUT=FILE -DOUTPUT=FILE.cpp -DNAME=NAME -P embed_text.cmake: a text as a constant of svod::packager.
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "// Made from ${INPUT}.\nnamespace svod::packager {\nextern const char ${NAME}[];\nconst char ${NAME}[] = R\"text(${text})text\";\n} // namespace svod::packager\n")
