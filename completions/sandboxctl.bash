# SPDX-License-Identifier: MIT
# bash completion for sandboxctl(1). Names of sessions and environments are asked for quietly, and only from this
# machine's daemon: a completion must not start ssh.

# What the daemon says, by a pattern for names in it.
_sandboxctl_names() {
        "$_sandboxctl_program" "${_sandboxctl_global[@]}" --json "$1" 2>/dev/null </dev/null |
                grep -o '"name":"[A-Za-z0-9][A-Za-z0-9_-]*"' | sed 's/.*:"\(.*\)"/\1/' | sort -u
}

_sandboxctl_sessions() {
        [ -n "$_sandboxctl_remote" ] || COMPREPLY+=($(compgen -W "$(_sandboxctl_names list)" -- "$1"))
}

_sandboxctl_environments() {
        [ -n "$_sandboxctl_remote" ] || COMPREPLY+=($(compgen -W "$(_sandboxctl_names envs)" -- "$1"))
}

_sandboxctl_words() {
        COMPREPLY+=($(compgen -W "$2" -- "$1"))
}

# The value of an option; fails where the word is none.
_sandboxctl_value() {
        local cur=$1 prev=$2 verb=$3

        case $prev in
        --socket) COMPREPLY=($(compgen -f -- "$cur")) ;;
        -H | --host) COMPREPLY=($(compgen -A hostname -- "$cur")) ;;
        --user) COMPREPLY=($(compgen -u -- "$cur")) ;;
        --timeout | --memory | --cpus | --network | --allow | --snapshot | --lines | --expect | -d | -n) ;;
        --file) COMPREPLY=($(compgen -f -- "$cur")) ;;
        --project-mode) COMPREPLY=($(compgen -W "none read-only read-write" -- "$cur")) ;;
        --pictures | --project) COMPREPLY=($(compgen -d -- "$cur")) ;;
        -e | --env) _sandboxctl_environments "$cur" ;;
        -i | --interpreter) _sandboxctl_words "$cur" "python bash node" ;;
        -s | --session) _sandboxctl_sessions "$cur" ;;
        -f) [ "$verb" = audit ] && COMPREPLY=($(compgen -f -- "$cur")) ;;
        *) return 1 ;;
        esac
}

# Which word behind get or put: a session, then a file here and one there.
_sandboxctl_files() {
        case $2$3 in
        get1 | put1) _sandboxctl_sessions "$1" ;;
        get3 | put2) COMPREPLY=($(compgen -f -- "$1")) ;;
        esac
}

_sandboxctl() {
        local cur=${COMP_WORDS[COMP_CWORD]} prev= verb= options= word i
        local _sandboxctl_program=$1 _sandboxctl_remote=
        local -a _sandboxctl_global=()

        COMPREPLY=()
        [ "$COMP_CWORD" -gt 0 ] && prev=${COMP_WORDS[COMP_CWORD - 1]}
        for ((i = 1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                case $word in
                --socket) _sandboxctl_global=(--socket "${COMP_WORDS[i + 1]}"); ((i++)) ;;
                -H | --host) _sandboxctl_remote=yes; ((i++)) ;;
                -*) ;;
                *) verb=$word; break ;;
                esac
        done

        _sandboxctl_value "$cur" "$prev" "$verb" && return
        case $verb in
        '')
                if [[ $cur == -* ]]; then
                        _sandboxctl_words "$cur" "-H --host --socket --json --no-ask-password --version --help"
                else
                        _sandboxctl_words "$cur" "run list top show stats set kill freeze thaw interrupt history vars save snapshots restore rollback get put events audit envs doctor reload"
                fi
                return
                ;;
        run) options="-e --env -i --interpreter -s --session --timeout --memory --cpus --network --pictures --project --project-mode" ;;
        list | show | stats) options=-a ;;
        set) options="-a -x --allow" ;;
        history) options="-a --replay" ;;
        vars) options="-i --interpreter" ;;
        top) options="-a -b -d -n" ;;
        kill | freeze | thaw | interrupt) options="-a --all --user -y --yes" ;;
        save | snapshots) options=-a ;;
        restore) options="--snapshot --project-mode" ;;
        events) options="-a -f" ;;
        audit) options="-f --file -n --lines --expect" ;;
        esac

        if [[ $cur == -* ]]; then
                _sandboxctl_words "$cur" "$options"
                return
        fi
        case $verb in
        show | stats | kill | freeze | thaw | interrupt | history | save | snapshots | restore | rollback) _sandboxctl_sessions "$cur" ;;
        set)
                # "memory=" ends a word of bash's.
                [[ $prev == = || $cur == = ]] && return
                _sandboxctl_sessions "$cur"
                _sandboxctl_words "$cur" "memory= cpus= processes= cpu-weight= io-read= io-write="
                [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
                ;;
        vars) [ $((COMP_CWORD - i)) -eq 1 ] && _sandboxctl_sessions "$cur" ;;
        get | put)
                _sandboxctl_files "$cur" "$verb" $((COMP_CWORD - i))
                ;;
        audit) _sandboxctl_words "$cur" verify ;;
        esac
}

complete -F _sandboxctl sandboxctl
