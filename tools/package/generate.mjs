// Man pages and shell completions, made from what the program says of itself (`cairn help`), so
// that they are never behind it:
//
//     node tools/package/generate.mjs CAIRN OUTDIR VERSION
//
// writes OUTDIR/man/*.1, OUTDIR/completion/{bash,zsh,fish}.
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

import { readCommands } from "./commands.mjs";

const [cairn, out, version] = process.argv.slice(2);

/** [[group, its verbs]] */
const groups = (command) => Object.entries(command.verbs).filter(([, words]) => words.length > 0);

const roff = (text) => text.replace(/\\/g, "\\e").replace(/-/g, "\\-").replace(/^([.'])/gm, "\\&$1");

/** Paragraphs flow; indented lines stay as they are. */
function body(text) {
  return text.split("\n\n").map((part) =>
    /^ /m.test(part) ? `.PP\n.nf\n${roff(part)}\n.fi` : `.PP\n${roff(part.replace(/\n/g, " "))}`).join("\n");
}

function optionRows(options) {
  return options.map((option) => {
    const name = `${option.letter ? `\\fB\\-${option.letter}\\fR, ` : ""}\\fB\\-\\-${roff(option.name)}\\fR${option.value ? ` \\fI${roff(option.value)}\\fR` : ""}`;
    const variable = option.variable ? ` The variable \\fB${option.variable}\\fR sets it too.` : "";
    return `.TP\n${name}\n${roff(option.help)}.${variable}`;
  }).join("\n");
}

const header = (title) => `.TH ${title.toUpperCase()} 1 "" "cairn ${version}" "Cairn"\n`;

function commandPage(command, all) {
  return `${header(`cairn-${command.name}`)}.SH NAME
cairn\\-${command.name} \\- ${roff(command.summary)}
.SH SYNOPSIS
.B ${roff(command.usage)}
.SH DESCRIPTION
${body(command.text)}
${command.examples ? `.SH EXAMPLES\n.nf\n${roff(command.examples)}\n.fi\n` : ""}${command.options.length ? `.SH OPTIONS\n${optionRows(command.options)}\n` : ""}.SH SEE ALSO
.BR cairn (1)${all.filter((other) => other !== command && other.options.length).map((other) => `,\n.BR cairn\\-${other.name} (1)`).join("")}
`;
}

function mainPage(commands) {
  return `${header("cairn")}.SH NAME
cairn \\- serve Workers projects with Durable Objects on your own machine
.SH SYNOPSIS
.B cairn
.I COMMAND
.RI [ ARGUMENTS ]
.SH DESCRIPTION
Cairn serves Workers projects: stateless workers, Durable Objects with their own SQLite database, and the services around them.
An answer that has left the server rests on writes that are already on disk.
.SH COMMANDS
${commands.map((command) => `.TP\n.B ${command.name}\n${roff(command.summary)}.`).join("\n")}
.SH EXIT STATUS
0: done. 1: it failed; a sentence on standard error says why. 2: the command line is wrong.
.B cairn check
has 1 for damage and 3 for a directory that cannot be checked.
.SH FILES
.TP
.I PROJECT/wrangler.toml, .json, .jsonc
the configuration
.TP
.I PROJECT/.cairn
the data directory, unless \\-\\-data names another
.TP
.I /etc/default/cairn, /var/lib/cairn
settings and data of the service of the Debian package
.SH SEE ALSO
${commands.filter((command) => command.options.length).map((command) => `.BR cairn\\-${command.name} (1)`).join(",\n")}
`;
}

function bash(commands) {
  const cases = commands.map((command) => {
    const words = command.options.map((option) => `--${option.name}`).join(" ");
    const verbs = Object.keys(command.verbs).join(" ");
    return `    ${command.name}) words="${words}"${verbs && ` verbs="${verbs}"`} ;;`;
  }).join("\n");
  const inner = commands.flatMap((command) => groups(command).map(([group, words]) => `    "${command.name} ${group}") verbs="${words.join(" ")}" ;;`)).join("\n");
  return `# bash completion for cairn; made from \`cairn help\`.
_cairn() {
  local word=\${COMP_WORDS[COMP_CWORD]} words="" verbs=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commands.map((command) => command.name).join(" ")}" -- "$word"))
    return
  fi
  case \${COMP_WORDS[1]} in
${cases}
  esac
  [ "$COMP_CWORD" -eq 2 ] || verbs=""
  [ "$COMP_CWORD" -ne 3 ] || case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in
${inner}
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) if [ -n "$verbs" ]; then COMPREPLY=($(compgen -W "$verbs" -- "$word")); else COMPREPLY=($(compgen -f -- "$word")); fi ;;
  esac
}
complete -o filenames -F _cairn cairn
`;
}

const quote = (text) => `'${text.replace(/'/g, "'\\''")}'`;

function zsh(commands) {
  const cases = commands.map((command) => {
    const options = command.options.map((option) => quote(`--${option.name}[${option.help.replace(/[[\]:]/g, " ")}]${option.value ? `:${option.value.replace(/:/g, " ")}:_files` : ""}`));
    const verbs = Object.keys(command.verbs);
    const first = verbs.length ? `'1: :(${verbs.join(" ")})' ` : "";
    const second = groups(command).length ? `'2: :->inner' ` : "";
    return `    ${command.name}) _arguments ${options.join(" ")} ${first}${second}'*: :_files' ;;`;
  }).join("\n");
  const inner = commands.flatMap((command) => groups(command).map(([group, words]) => `    ${quote(`${command.name} ${group}`)}) compadd ${words.join(" ")} ;;`)).join("\n");
  return `#compdef cairn
# Made from \`cairn help\`.
_cairn() {
  if (( CURRENT == 2 )); then
    local -a commands=(${commands.map((command) => quote(`${command.name}:${command.summary}`)).join(" ")})
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  local state
  case $command in
${cases}
  esac
  [[ $state == inner ]] && case "$command $words[2]" in
${inner}
    *) _files ;;
  esac
}
_cairn "$@"
`;
}

function fish(commands) {
  const lines = ["# Made from `cairn help`."];
  for (const command of commands) {
    lines.push(`complete -c cairn -n __fish_use_subcommand -a ${command.name} -d ${quote(command.summary)}`);
    const verbs = Object.keys(command.verbs);
    if (verbs.length)
      lines.push(`complete -c cairn -f -n '__fish_seen_subcommand_from ${command.name}; and not __fish_seen_subcommand_from ${verbs.join(" ")}' -a '${verbs.join(" ")}'`);
    for (const [group, words] of groups(command))
      lines.push(`complete -c cairn -f -n '__fish_seen_subcommand_from ${command.name}; and __fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${words.join(" ")}' -a '${words.join(" ")}'`);
    for (const option of command.options)
      lines.push(`complete -c cairn -n '__fish_seen_subcommand_from ${command.name}' -l ${option.name}${option.letter ? ` -s ${option.letter}` : ""}${option.value ? " -r" : ""} -d ${quote(option.help)}`);
  }
  return `${lines.join("\n")}\n`;
}

const commands = readCommands(cairn);
mkdirSync(path.join(out, "man"), { recursive: true });
mkdirSync(path.join(out, "completion"), { recursive: true });
writeFileSync(path.join(out, "man/cairn.1"), mainPage(commands));
for (const command of commands.filter((each) => each.options.length))
  writeFileSync(path.join(out, `man/cairn-${command.name}.1`), commandPage(command, commands));
for (const [name, make] of Object.entries({ bash, zsh, fish })) writeFileSync(path.join(out, "completion", name), make(commands));
