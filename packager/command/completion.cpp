// Completion scripts. A shell is told words only; what a model holds is not known to it.
// Values are offered by the type that help names: a choice, FILE, DIR, TARGET.
#include "compiler/support/join.h"
#include "packager/command/help.h"
#include "packager/command/option_table.h"

namespace svod::packager {

namespace {

std::string verb_words(const char* separator = " ") {
  std::vector<std::string> words;
  for (const VerbRow& row : verb_rows()) words.emplace_back(row.word);
  return join(words, separator);
}

// The rest of a loop over words that looks for the verb among them.
std::string find_verb() {
  return "    case $word in " + verb_words("|") + ") verb=$word; break ;; esac\n  done\n";
}

bool names_a_file(const OptionText& option) {
  return option.type.find("FILE") != std::string::npos;
}

// The names of an option as `separator` joins them.
std::string both_names(const OptionText& option, const char* separator) {
  const bool both = !option.short_name.empty() && !option.long_name.empty();
  return option.short_name + (both ? separator : "") + option.long_name;
}

std::string option_words(Verb verb) {
  std::vector<std::string> words;
  for (const OptionText& option : options_of(verb))
    for (const std::string& name : {option.short_name, option.long_name})
      if (!name.empty()) words.push_back(name);
  return join(words, " ");
}

// What follows an option, as a case of the previous word; all verbs take it from pack.
std::string bash_values() {
  std::string out;
  std::vector<OptionText> all = options_of(Verb::Pack);
  for (const OptionText& option : options_of(Verb::Ops))
    if (option.long_name == "--format") all.push_back(option);
  for (const OptionText& option : all) {
    if (option.type.empty() || option.type.starts_with("[")) continue;
    const std::string words = join(words_of_type(option.type), " ");
    std::string reply = "COMPREPLY=()";
    if (!words.empty())
      reply = "COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\"))";
    else if (option.type == "DIR")
      reply = "COMPREPLY=($(compgen -d -- \"$cur\"))";
    else if (names_a_file(option))
      reply = "COMPREPLY=($(compgen -f -- \"$cur\"))";
    out += "    " + both_names(option, "|") + ") " + reply + "; return ;;\n";
  }
  return out;
}

std::string bash_script() {
  std::string out =
      "# bash completion of svod-pack\n"
      "_svod_pack() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local verb=pack word\n"
      "  # --option=value comes in three words.\n"
      "  if [[ $cur == = ]]; then cur=; "
      "elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  case $prev in\n" +
      bash_values() +
      "  esac\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
      find_verb() +
      "  local options actions=\n"
      "  case $verb in\n";
  for (const VerbRow& row : verb_rows())
    out += std::string("    ") + row.word + ") options='" + option_words(row.verb) +
           "'; actions='" + join(words_of_type(row.operand), " ") + "' ;;\n";
  return out +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "  else\n"
         "    [[ $COMP_CWORD == 1 ]] && actions='" +
         verb_words() +
         "'\n"
         "    COMPREPLY=($(compgen -W \"$actions\" -- \"$cur\") $(compgen -f -- "
         "\"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _svod_pack svod-pack\n";
}

// Text within '...[...]': quotes end the word, brackets the text.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\'') out += "'\\'";
    if (c == '[' || c == ']' || c == ':') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_option(const OptionText& option) {
  std::string action;
  if (const std::string words = join(words_of_type(option.type), " "); !words.empty())
    action = ":" + zsh_text(option.long_name.empty() ? "value" : option.long_name) +
             ":(" + words + ")";
  else if (option.type == "DIR")
    action = ":folder:_files -/";
  else if (option.type.starts_with("["))
    action = "::file:_files";
  else if (names_a_file(option))
    action = ":file:_files";
  else if (!option.type.empty())
    action = ":" + zsh_text(option.type) + ":";
  std::string out;
  for (const std::string& name : {option.short_name, option.long_name}) {
    if (name.empty()) continue;
    const char* value = option.type.empty()            ? ""
                        : option.type.starts_with("[") ? "=-"
                        : name.size() == 2             ? "+"
                                                       : "=";
    out += "        '*" + name + value + "[" + zsh_text(option.text) + "]" + action +
           "' \\\n";
  }
  return out;
}

std::string zsh_script() {
  std::string out = "#compdef svod-pack\n"
                    "# zsh completion of svod-pack\n"
                    "_svod_pack() {\n"
                    "  local verb=pack word\n"
                    "  for word in ${words[2,CURRENT-1]}; do\n" +
                    find_verb() + "  case $verb in\n";
  for (const VerbRow& row : verb_rows()) {
    out += std::string("    ") + row.word + ")\n      _arguments -s -S \\\n";
    for (const OptionText& option : options_of(row.verb)) out += zsh_option(option);
    const std::string actions = join(words_of_type(row.operand), " ");
    if (row.verb == Verb::Pack)
      out += "        '1:model or verb:{_values verb " + verb_words() +
             "; _files}' '*:model:_files' ;;\n";
    else if (!actions.empty())
      out += "        '1:verb:' '2:action:(" + actions + ")' ;;\n";
    else
      out += "        '1:verb:' '*:model:_files' ;;\n";
  }
  return out + "  esac\n}\n"
               "if [ \"$funcstack[1]\" = _svod_pack ]; then _svod_pack \"$@\"; "
               "else compdef _svod_pack svod-pack; fi\n";
}

std::string fish_text(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string fish_option(const std::string& condition, const OptionText& option) {
  std::string out = "complete -c svod-pack -n '" + condition + "'";
  if (!option.short_name.empty()) out += " -s " + option.short_name.substr(1);
  if (!option.long_name.empty()) out += " -l " + option.long_name.substr(2);
  const std::string words = join(words_of_type(option.type), " ");
  if (!words.empty())
    out += " -x -a '" + words + "'";
  else if (option.type == "DIR")
    out += " -x -a '(__fish_complete_directories)'";
  else if (names_a_file(option) && !option.type.starts_with("["))
    out += " -r -F";
  else if (!option.type.empty() && !option.type.starts_with("["))
    out += " -x";
  return out + " -d '" + fish_text(option.text) + "'\n";
}

std::string fish_script() {
  std::string out = "# fish completion of svod-pack\n", others;
  for (const VerbRow& row : verb_rows())
    if (row.verb != Verb::Pack)
      others += (others.empty() ? "" : " ") + std::string(row.word);
  for (const VerbRow& row : verb_rows()) {
    out += "complete -c svod-pack -n __fish_use_subcommand -a " + std::string(row.word) +
           " -d '" + fish_text(row.summary) + "'\n";
    const std::string condition =
        row.verb == Verb::Pack ? "not __fish_seen_subcommand_from " + others
                               : "__fish_seen_subcommand_from " + std::string(row.word);
    for (const OptionText& option : options_of(row.verb))
      out += fish_option(condition, option);
    if (const std::string actions = join(words_of_type(row.operand), " ");
        !actions.empty())
      out += "complete -c svod-pack -n '" + condition + "' -x -a '" + actions + "'\n";
  }
  return out;
}

} // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  return "";
}

} // namespace svod::packager
