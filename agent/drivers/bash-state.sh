# SPDX-License-Identifier: MIT
#
# The seldom part of the bash driver: save and restore (agent/driver-protocol.h). With bash-list.sh it is an argument
# of its own, so that a shell's start does not parse it, and is read from the shell's own command line when it is
# first needed.
#
# Save, list and show run in forks of the shell, which may be changed and may die of a reader that has gone.
# No value is expanded but as a whole: a subscript in a nameref's target may hold a command.
#
# A saved state is pairs of what a script restores, "KIND NAME", and that script, each with a NUL at its end, which
# no value of bash contains. Scripts are evaluated one by one at top level, where declare means globals: what fails
# is named, the rest is kept.
# The order matters: declare is called by its bare name, so variables go before functions and aliases; what
# changes how code is read or run goes last. Traps are set by the driver's own function trap, and one of the
# user's with that name comes after them.

# What a shell sets itself, and what is the driver's. It goes without saying that these are not kept.
__sandbox_is_special() {
        case $1 in
        __sandbox_* | _ | - | BASH | BASHOPTS | BASHPID | BASH_ALIASES | BASH_ARG[CV] | BASH_ARGV0 | BASH_CMDS | \
                BASH_COMPAT | BASH_COMMAND | BASH_EXECUTION_STRING | BASH_LINENO | BASH_LOADABLES_PATH | \
                BASH_MONOSECONDS | BASH_SOURCE | BASH_SUBSHELL | BASH_TRAPSIG | BASH_VERSINFO | BASH_VERSION | \
                COMP_WORDBREAKS | \
                DIRSTACK | EPOCHREALTIME | EPOCHSECONDS | EUID | FUNCNAME | GROUPS | HISTCMD | HOSTNAME | HOSTTYPE | \
                LINENO | MACHTYPE | OSTYPE | PIPESTATUS | PPID | PWD | RANDOM | SHELLOPTS | SHLVL | SRANDOM | UID)
                builtin return 0 ;;
        esac
        builtin return 1
}

# Without extended patterns, which recurse.
__sandbox_is_name() {
        [[ $1 && $1 != [0-9]* && $1 != *[!A-Za-z0-9_]* ]]
}

# Before anything is changed: __sandbox_variables[NAME] is "FLAGS TEXT" as declare prints them, less what the
# shell inherited and has not changed; __sandbox_order has their names, and __sandbox_functions what declare -F
# prints, both sorted.
__sandbox_survey() {
        builtin local __sandbox_lines __sandbox_line __sandbox_name __sandbox_flags
        builtin mapfile -t __sandbox_lines < <(builtin declare -p)
        builtin mapfile -t __sandbox_functions < <(builtin declare -F)
        __sandbox_options=$(builtin shopt -p; builtin set +o)
        builtin shopt -u nocasematch patsub_replacement
        builtin shopt -s globasciiranges

        __sandbox_order=()
        builtin declare -gA __sandbox_variables __sandbox_inherited
        [[ -v __sandbox_environment ]] || builtin mapfile -t -d '' __sandbox_environment </proc/self/environ
        for __sandbox_line in "${__sandbox_environment[@]}"; do
                # The name of an exported function has a % in it.
                ! __sandbox_is_name "${__sandbox_line%%=*}" ||
                        __sandbox_inherited[${__sandbox_line%%=*}]=${__sandbox_line#*=}
        done
        for __sandbox_line in "${__sandbox_lines[@]}"; do
                [[ $__sandbox_line == 'declare -'* ]] || builtin continue
                __sandbox_line=${__sandbox_line#declare -}
                __sandbox_flags=${__sandbox_line%% *}
                __sandbox_line=${__sandbox_line#* }
                __sandbox_name=${__sandbox_line%%=*}
                # A line may be of a value of several lines: then there need not be such a variable.
                if ! __sandbox_is_name "$__sandbox_name" || __sandbox_is_special "$__sandbox_name" ||
                        ! builtin declare -p "$__sandbox_name" >/dev/null || __sandbox_is_inherited; then
                        builtin continue
                fi
                [[ $__sandbox_line == *=* ]] || __sandbox_line==
                [[ -v __sandbox_variables[$__sandbox_name] ]] || __sandbox_order+=("$__sandbox_name")
                __sandbox_variables[$__sandbox_name]="$__sandbox_flags ${__sandbox_line#*=}"
        done
}

__sandbox_is_inherited() {
        [[ $__sandbox_flags == x && -v __sandbox_inherited[$__sandbox_name] &&
                ${__sandbox_inherited[$__sandbox_name]} == "${!__sandbox_name-}" ]]
}

# Sets __sandbox_names to the names of user functions.
__sandbox_list_functions() {
        builtin local __sandbox_line
        __sandbox_names=()
        for __sandbox_line in "${__sandbox_functions[@]}"; do
                __sandbox_line=${__sandbox_line#declare -* }
                case $__sandbox_line in
                '' | __sandbox_*) builtin continue ;;
                sandbox-result)
                        [[ $(builtin declare -f sandbox-result) != */.sandbox-result-* ]] || builtin continue ;;
                trap) [[ $(builtin declare -f trap) != *__sandbox_set_traps* ]] || builtin continue ;;
                esac
                __sandbox_names+=("$__sandbox_line")
        done
}

# ---- JSON

# Makes a string of the argument, in __sandbox_json.
__sandbox_quote() {
        builtin local __sandbox_number __sandbox_character __sandbox_escape
        __sandbox_escape='\'
        __sandbox_json=${1//"$__sandbox_escape"/"$__sandbox_escape$__sandbox_escape"}
        __sandbox_json=${__sandbox_json//'"'/"$__sandbox_escape\""}
        __sandbox_json=${__sandbox_json//$'\n'/"${__sandbox_escape}n"}
        for ((__sandbox_number = 1; __sandbox_number < 128; __sandbox_number++)); do
                [[ $__sandbox_json == *[$'\001'-$'\037'$'\177']* ]] || builtin break
                ((__sandbox_number != 32)) || __sandbox_number=127
                builtin printf -v __sandbox_escape '\\u%04x' "$__sandbox_number"
                builtin printf -v __sandbox_character "\\x${__sandbox_escape: -2}"
                __sandbox_json=${__sandbox_json//"$__sandbox_character"/"$__sandbox_escape"}
        done
        __sandbox_json="\"$__sandbox_json\""
}

# declare's text in a locale that is sure to print what JSON can hold: all that is not printable is escaped.
__sandbox_sane_locale() {
        [[ ${LC_ALL@a} != *r* ]] || builtin return 0
        LC_ALL=C
        LC_ALL=C.UTF-8
}

__sandbox_skip() {
        builtin local __sandbox_json
        ((${#__sandbox_skipped[@]} < 100)) || { ((++__sandbox_skipped_more)); builtin return; }
        __sandbox_quote "${1:0:200}"
        __sandbox_skipped+=("{\"name\":$__sandbox_json,\"why\":\"$2\"}")
}

# The arguments are "true" or "false", a reason, and further members.
__sandbox_write_report() {
        builtin local __sandbox_object __sandbox_comma
        __sandbox_comma=
        builtin printf '{"ok":%s,"why":%s,"version":"%d.%d.%d",%s"skipped":[' "$1" "$2" \
                "${BASH_VERSINFO[@]::3}" "${3-}"
        for __sandbox_object in "${__sandbox_skipped[@]}"; do
                builtin printf '%s%s' "$__sandbox_comma" "$__sandbox_object"
                __sandbox_comma=,
        done
        builtin printf '],"skipped_more":%d}\n' "$__sandbox_skipped_more"
}

# ---- save

__sandbox_save() {
        builtin local __sandbox_descriptor
        __sandbox_skipped=() __sandbox_skipped_more=0 __sandbox_saved=0
        __sandbox_save_all >"$1" || builtin exit 1
        __sandbox_sane_locale
        [[ ! $__sandbox_jobs ]] || __sandbox_skip "processes ${__sandbox_jobs//$'\n'/ }" \
                'background jobs are not saved'
        for ((__sandbox_descriptor = 3; __sandbox_descriptor < 256; __sandbox_descriptor++)); do
                ! __sandbox_is_open "$__sandbox_descriptor" ||
                        __sandbox_skip "descriptor $__sandbox_descriptor" 'open files are not saved'
        done
        __sandbox_write_report true null "\"saved\":$__sandbox_saved," >"$2"
}

__sandbox_save_all() {
        builtin local __sandbox_name __sandbox_own_trap
        builtin printf 'nix-sandbox bash state 1\0:\0'
        # A path through symlinks, unless that is not the cwd any more.
        __sandbox_name=${PWD-.}
        [[ $__sandbox_name -ef . ]] || __sandbox_name=$(builtin pwd -P)
        builtin printf 'directory \0builtin cd -- %q\0' "$__sandbox_name"
        for ((__sandbox_name = ${#DIRSTACK[@]} - 1; __sandbox_name > 0; __sandbox_name--)); do
                builtin printf 'directory \0builtin pushd -n -- %q\0' "${DIRSTACK[__sandbox_name]}"
        done
        builtin printf 'mask \0builtin umask %s\0' "$(builtin umask)"
        builtin printf 'arguments \0builtin set --'
        ((${#__sandbox_arguments[@]} == 0)) || builtin printf ' %q' "${__sandbox_arguments[@]}"
        builtin printf '\0status \0__sandbox_status=%d\0' "$__sandbox_status"
        __sandbox_survey
        __sandbox_save_variables
        __sandbox_list_functions
        __sandbox_own_trap=
        for __sandbox_name in "${__sandbox_names[@]}"; do
                if [[ $__sandbox_name == trap ]]; then
                        __sandbox_own_trap=yes
                else
                        __sandbox_save_function "$__sandbox_name"
                fi
        done
        for __sandbox_name in "${!BASH_ALIASES[@]}"; do
                builtin printf 'alias %s\0builtin alias -- %q\0' "$__sandbox_name" \
                        "$__sandbox_name=${BASH_ALIASES[$__sandbox_name]}"
        done
        builtin printf 'options \0'
        # First all off. Some are not what they were in a fork, others change when yet others do.
        __sandbox_options=${__sandbox_options//shopt -s/shopt -u}
        __sandbox_write_lines "${__sandbox_options//set -o/set +o}"
        builtin printf 'builtin set -o %s\n' "${__sandbox_set//:/$'\nbuiltin set -o '}"
        builtin printf 'builtin shopt -s %s\n\0' "${__sandbox_shopt//:/$'\nbuiltin shopt -s '}"
        builtin printf 'traps \0%s\0' "$__sandbox_traps"
        [[ ! $__sandbox_own_trap ]] || __sandbox_save_function trap
        builtin printf 'end \0:\0'
}

__sandbox_save_variables() {
        builtin local __sandbox_name
        for __sandbox_name in IFS PATH PS4 SHELL TERM "${!__sandbox_inherited[@]}"; do  # a new shell has them
                [[ -v $__sandbox_name || -R $__sandbox_name ]] || __sandbox_is_special "$__sandbox_name" ||
                        builtin printf 'variable %s\0builtin unset -v %s\0' "$__sandbox_name" "$__sandbox_name"
        done
        for __sandbox_name in "${__sandbox_order[@]}"; do
                case $__sandbox_name in
                COPROC | COPROC_PID)
                        __sandbox_skip "$__sandbox_name" 'coprocesses are not saved'
                        builtin continue ;;
                esac
                ((++__sandbox_saved))
                builtin printf 'variable %s\0' "$__sandbox_name"
                builtin declare -p "$__sandbox_name"
                builtin printf '\0'
        done
}

__sandbox_save_function() {
        ((++__sandbox_saved))
        builtin printf 'function %s\0' "$1"
        builtin declare -f "$1"
        # Its attributes: a line "declare -fx NAME".
        builtin local __sandbox_line
        for __sandbox_line in "${__sandbox_functions[@]}"; do
                [[ $__sandbox_line != "declare -f"*" $1" || $__sandbox_line == "declare -f $1" ]] ||
                        builtin printf 'builtin %s\n' "$__sandbox_line"
        done
        builtin printf '\0'
}

# ---- restore

# Reads the whole state; the records are evaluated at top level.
__sandbox_read_state() {
        __sandbox_skipped=() __sandbox_skipped_more=0 __sandbox_why=null
        builtin shopt -u expand_aliases
        builtin shopt -s extglob                # patterns may need it
        builtin mapfile -t -d '' __sandbox_records <"$1"
        if [[ ${__sandbox_records[0]-} != 'nix-sandbox bash state 1' ]]; then
                __sandbox_records=()
                __sandbox_why='"not a state that this driver understands"'
        elif [[ ${__sandbox_records[-2]-} != 'end ' || ${__sandbox_records[-1]} != : ]]; then
                # The last one may be half of a value.
                builtin unset -v '__sandbox_records[-1]'
                __sandbox_why='"the state ends too early"'
        fi
}

# Names the record that has failed.
__sandbox_refuse() {
        builtin local __sandbox_kind __sandbox_name
        __sandbox_kind=${__sandbox_records[__sandbox_record - 1]}
        __sandbox_name=${__sandbox_kind#* }
        __sandbox_kind=${__sandbox_kind%% *}
        case $__sandbox_kind in
        options | status | nix-sandbox | end) ;;
        directory) __sandbox_skip 'working directory' 'it is not there any more' ;;
        variable)
                if [[ $(builtin declare -p "$__sandbox_name") == 'declare -'*([a-zA-Z])r* ]]; then
                        __sandbox_skip "$__sandbox_name" 'it is readonly here'
                else
                        __sandbox_skip "$__sandbox_name" 'bash does not take its value'
                fi ;;
        function | alias) __sandbox_skip "$__sandbox_name" "bash does not take the $__sandbox_kind" ;;
        *) __sandbox_skip "${__sandbox_kind//[!a-z]}" 'bash does not take it' ;;
        esac
}

__sandbox_report_restored() {
        if [[ $__sandbox_why == null ]]; then
                __sandbox_write_report true null
        else
                __sandbox_write_report false "$__sandbox_why"
        fi >"$__sandbox_report_path"
}

# The report is written in a fork: the reader may have gone, and SIGPIPE would be the end.
__sandbox_restored() {
        __sandbox_apart __sandbox_report_restored
        builtin unset -v __sandbox_records __sandbox_record __sandbox_skipped __sandbox_why \
                __sandbox_skipped_more __sandbox_report_path __sandbox_state_path
        __sandbox_operated
}

# ---- which

# In a fork of the shell. The arguments are the verb and the lines of the payload.
__sandbox_perform() {
        case $1 in
        save) __sandbox_save "$2" "$3" ;;
        list) __sandbox_list >"$2" ;;
        show) __sandbox_show "$3" >"$2" ;;
        esac
}

# At top level, as code of a turn.
__sandbox_restoring='
__sandbox_read_state "$__sandbox_state_path"
for ((__sandbox_record = 1; __sandbox_record < ${#__sandbox_records[@]}; __sandbox_record += 2)); do
        \builtin eval -- "${__sandbox_records[__sandbox_record]}" >/dev/null 2>&1 || __sandbox_refuse
done 2>/dev/null
{ __sandbox_mend; __sandbox_restored; } 2>/dev/null'
