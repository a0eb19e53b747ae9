builtin eval -- "${BASH_EXECUTION_STRING#*$'\n'}"; builtin eval -- "$__sandbox_loop"; builtin exit
# SPDX-License-Identifier: MIT
#
# The driver of a persistent bash (agent/driver-protocol.h), started as bash --norc --noprofile -c TEXT bash SELDOM.
#
# Theory of operation
#
# Code of a turn is evaluated in this very shell, at top level and outside any function, so that declare,
# set, cd and exec mean what they mean in a script. The first line of this file evaluates the rest, then for
# ever the loop: bash counts the lines of evaluated code from the line that the eval is on, and people want
# "line 3" to be the third of theirs. A stray break leaves the loop, so it evaluates itself again.
#
# What ends a shell (exit, set -e, set -u, HUP, INT, TERM) ends in the EXIT trap, and that executes bash anew
# in the same process: pid, children, descriptors, cwd, umask and limits stay by themselves. All the rest is
# written as a script by a fork into a pipe, and read from it by the new shell: no file, no external program,
# no environment. The job table, coprocesses and completions are not restored: wait does not know the
# children from before. Interrupts take the same way, as bash can abandon code in no other.
#
# The user's code shares this shell, so whatever it does to options, functions, traps and variables must not
# reach the driver. It calls nothing but `builtin X` and itself, its names begin with __sandbox_, its
# functions were parsed before there were aliases, and they run in conditions, where neither errexit nor ERR
# traps apply. Code that fights the driver can lose its session but not hang it: whatever breaks ends in the
# exit of this process, and the agent starts another.
#
# Descriptors: 76 /dev/null, 77 the control socket, 78 and 79 stdout and stderr of turns; all close-on-exec.
# These are above the numbers that people choose and that bash takes for <(…), and fit in a small ulimit -n.
# While code runs, its 0 to 2 are copies, and bash puts the driver's own aside above 79. Those are /dev/null,
# which hides what set -x and DEBUG traps print about the driver.

# ---- between two turns

# Reports the turn that has ended, if there was one, and receives the next. It is the condition of an until,
# and never true: after set -n nothing is executed, and the last status, 0, ends an until but not a while.
__sandbox_next() {
        [[ ! ${__sandbox_token-} ]] || __sandbox_status=$1
        __sandbox_arguments=("${@:2}")
        __sandbox_set=$SHELLOPTS
        builtin local -
        builtin set +kx
        __sandbox_mend
        # Without its token or a stream a turn cannot be ended, nor the next one run.
        [[ -v __sandbox_token && -e /dev/fd/76 && -e /dev/fd/78 && -e /dev/fd/79 ]] || __sandbox_end
        # In posix mode trap cannot be a function.
        [[ -o posix ]] || builtin declare -F trap || __sandbox_wrap_trap
        __sandbox_report kept
        # A restored break has left it, or the shell has just been woken.
        [[ ! ${__sandbox_operation-} ]] || __sandbox_operated "${__sandbox_gone-}"
        __sandbox_gone=
        until __sandbox_receive || __sandbox_operate; do
                builtin :
        done
        builtin return 1
}

# A function named builtin and disabled builtins would take the driver apart. They are undone by what nobody
# can redefine: an assignment, which turns posix mode on, and unset, which then goes before functions.
__sandbox_mend() {
        builtin enable eval exec exit local mapfile printf read return set source trap
        builtin printf -v __sandbox_probe mended
        if [[ ${__sandbox_probe-} != mended ]]; then
                [[ -o posix ]] || __sandbox_probe=:$BASHOPTS: POSIXLY_CORRECT=
                unset -f builtin enable
                enable builtin printf unset
                if [[ ${__sandbox_probe-} ]]; then
                        builtin unset -v POSIXLY_CORRECT
                        # Leaving posix mode sets these two as it likes.
                        [[ $__sandbox_probe != *:expand_aliases:* ]] || builtin shopt -s expand_aliases
                        [[ $__sandbox_probe == *:inherit_errexit:* ]] || builtin shopt -u inherit_errexit
                fi
                builtin printf 'bash: functions named builtin and enable do not outlive a turn\n' >&79
        fi
        __sandbox_probe=
}

# The token goes first: whoever sees the report may send a signal, and that is none of the turn's any more.
# The empty line ends what the code itself may have written to the socket.
__sandbox_report() {
        builtin local __sandbox_reported
        __sandbox_reported=$__sandbox_token     # not by builtin local, which splits words and minds set -k
        __sandbox_token=
        [[ ! -s /dev/shm/.sandbox-result-$$ ]] || __sandbox_send_result
        [[ ! $__sandbox_reported ]] ||
                builtin printf '\ndone %s %d %s\n' "$__sandbox_reported" "$__sandbox_status" "$1" >&77 ||
                __sandbox_end
}

# Fails if it is not a turn that was received but an operation. The token is set when all is read: until then a
# signal is none of a turn's.
__sandbox_receive() {
        builtin trap -- "${__sandbox_guards[EXIT]}" EXIT
        builtin local REPLY                     # what IFS does not apply to
        builtin local TMOUT=
        builtin local LC_ALL=C                  # read -N is to count bytes
        until builtin read -r -u 77; do
                (($? > 128)) || __sandbox_end   # not a signal or TMOUT, but end of file
        done
        builtin read -r -N "${REPLY##* }" -u 77 __sandbox_code
        if [[ $REPLY != execute* ]]; then
                __sandbox_operation=${REPLY% *}
                builtin return 1
        fi
        # The guard of ERR below can tell it from any argument that the code itself contains.
        [[ $__sandbox_code == *$'\n' ]] || __sandbox_code+=$'\n'
        REPLY=${REPLY#execute }
        __sandbox_token=${REPLY% *}
}

# Does what is asked for besides turns. It has no token, so that signals mean nothing. Fails if that is all, and
# otherwise leaves code to be run.
__sandbox_operate() {
        case $__sandbox_operation in
        park*)
                __sandbox_park
                builtin return 1 ;;
        wake*) __sandbox_wake ;;
        esac
        builtin local __sandbox_paths
        __sandbox_paths=("${__sandbox_code%%$'\n'*}" "${__sandbox_code#*$'\n'}")
        __sandbox_paths[1]=${__sandbox_paths[1]%$'\n'}
        if [[ $__sandbox_operation == restore* ]]; then
                __sandbox_state_path=${__sandbox_paths[0]} __sandbox_report_path=${__sandbox_paths[1]}
                __sandbox_learn
                __sandbox_code=$__sandbox_restoring
                builtin return 0
        fi
        __sandbox_shopt=$BASHOPTS
        __sandbox_jobs=$(builtin jobs -p)
        __sandbox_traps=$(__sandbox_list_traps)
        __sandbox_apart __sandbox_learn "${__sandbox_operation% *}" "${__sandbox_paths[@]}"
        __sandbox_operated
        builtin return 1
} 2>/dev/null

# Runs a function in a fork. SIGINT, which that has no trap for, must not end it.
__sandbox_apart() {
        builtin local __sandbox_interrupt
        for __sandbox_interrupt in 1 2 3; do    # nor the fork that tells the trap
                __sandbox_interrupt=$(builtin trap -p INT; builtin printf .)
                [[ $__sandbox_interrupt != *. ]] || builtin break
        done
        __sandbox_interrupt=${__sandbox_interrupt%.}
        builtin trap '' INT
        ("$@")
        builtin eval -- "builtin ${__sandbox_interrupt:-trap - INT}"
}

# Defines what else is needed (bash-state.sh), and does it, if there are arguments.
__sandbox_learn() {
        builtin local __sandbox_argv
        builtin enable alias cd declare jobs pushd pwd shopt umask unset
        builtin set +uH +o posix
        builtin shopt -u expand_aliases
        builtin shopt -s extglob interactive_comments extquote
        builtin mapfile -t -d '' __sandbox_argv </proc/self/cmdline
        builtin eval -- "${__sandbox_argv[6]}"
        (($# == 0)) || __sandbox_perform "$@"
}

__sandbox_operated() {
        builtin local __sandbox_operation_done
        __sandbox_operation_done=${__sandbox_operation##* }
        __sandbox_operation=
        builtin printf '\ndone %s %d kept\n' "$__sandbox_operation_done" "${1:-0}" >&77 || __sandbox_end
}

# Makes $? what it was at the end of the last turn.
__sandbox_recall() {
        builtin return "$__sandbox_status"
}

__sandbox_end() {
        builtin trap - EXIT
        builtin exit 0
        [[ ${__sandbox_nothing?} ]]             # without builtins, such an error is an end as well
}

# ---- from the end of a shell to the next one

# The default action of signals. Between turns they are ignored.
__sandbox_signal() {
        if [[ ${__sandbox_token-} ]]; then
                __sandbox_status=$1
                # An exit from within the EXIT trap would be final.
                [[ ! -v __sandbox_leaving ]] || __sandbox_resume
                builtin exit "$1"
        fi
}

# The first part of the EXIT trap: puts away what would get in the way of the rest.
__sandbox_leave() {
        __sandbox_status=$1 __sandbox_set=$SHELLOPTS __sandbox_shopt=$BASHOPTS __sandbox_leaving=yes
        builtin set +eEkvx
        # In a function these are the function's, and those from the turn's begin are the best there is.
        __sandbox_leaving_function=${FUNCNAME[1]-}
        [[ $__sandbox_leaving_function ]] || __sandbox_arguments=("${@:2}")
        __sandbox_mend
        [[ ${__sandbox_token-} ]] || __sandbox_end
        # The user's own action comes next, and the exit that many of them end with would be final.
        if [[ ${__sandbox_actions[EXIT]-} ]] && ! builtin declare -F exit >/dev/null; then
                __sandbox_leaving=exit
                exit() {
                        if [[ $BASHPID != "$$" ]]; then
                                builtin exit "$@"
                        fi
                        if (($# > 0)); then
                                (builtin exit "$@")
                                __sandbox_status=$?
                        fi
                        __sandbox_resume
                }
        fi
}

# Never returns. The fork that writes the state begins first; its pipe stays open for the called function.
__sandbox_resume() {
        [[ $__sandbox_leaving != exit ]] || builtin unset -f exit
        builtin mapfile -t -d '' __sandbox_argv </proc/self/cmdline
        # The next shell's is empty.
        [[ -v __sandbox_environment ]] || builtin mapfile -t -d '' __sandbox_environment </proc/self/environ
        __sandbox_traps=$(builtin trap -p)      # which <(…) does not know
        __sandbox_replace "${__sandbox_argv[@]::7}" "$__sandbox_token" "$__sandbox_status" \
                <(__sandbox_write)
} 2>/dev/null

# Executes bash anew, as it was called, with the turn's token and status and the state to read. Only 0 to 2
# do not take close-on-exec over from 77 to 79, hence the detour to 75. If exec fails, the shell ends.
__sandbox_replace() {
        # A signal that is ignored over exec could never be trapped again.
        builtin trap - HUP INT QUIT USR1 USR2 PIPE ALRM TERM CHLD CONT TSTP TTIN TTOU XCPU XFSZ
        builtin exec -c -a "$1" /proc/self/exe "${@:2}" 0<&79 75<&0 0<&77 1>&78
        __sandbox_end
}

# Runs in a fork. When exit was called in a function, the locals of all functions are still there, and would
# be taken for globals: errexit in an eval drops the scopes of all functions before the EXIT trap runs.
__sandbox_write() {
        if [[ $__sandbox_leaving_function ]]; then
                (
                        builtin trap __sandbox_write_state EXIT
                        builtin eval 'builtin set -e; builtin false'
                )
        else
                __sandbox_write_state
        fi
}

# The script that restores the state. The output of declare and alias calls them by their bare names, so it
# goes before the functions; what changes how code is read, and when traps run, goes last.
__sandbox_write_state() {
        builtin local __sandbox_text __sandbox_name
        builtin set +e
        builtin printf 'exec {__sandbox_descriptor}<&-\n'       # all is read by now
        # cd keeps a path through symlinks; if that is not the cwd any more, the cwd is kept.
        builtin printf 'if [[ %q -ef . ]]; then builtin cd -- %q; fi\n' "${PWD-.}" "${PWD-.}"
        for ((__sandbox_name = ${#DIRSTACK[@]} - 1; __sandbox_name > 0; __sandbox_name--)); do
                builtin printf 'builtin pushd -n -- %q\n' "${DIRSTACK[__sandbox_name]}"
        done
        builtin printf 'builtin set --'
        ((${#__sandbox_arguments[@]} == 0)) || builtin printf ' %q' "${__sandbox_arguments[@]}"
        builtin printf '\n'
        for __sandbox_name in IFS PATH PS4 SHELL TERM; do       # a new shell has them
                [[ -v $__sandbox_name ]] || builtin printf 'builtin unset -v %s\n' "$__sandbox_name"
        done
        builtin unset -v POSIXLY_CORRECT BASH_EXECUTION_STRING __sandbox_text __sandbox_name \
                __sandbox_state __sandbox_leaving __sandbox_argv __sandbox_code __sandbox_token __sandbox_operation
        builtin declare -p
        builtin alias -p

        builtin printf 'builtin shopt -s extglob\n'             # their patterns may need it
        builtin declare -f
        __sandbox_write_lines "$(builtin declare -F)"
        # First all that are off. Some are not what they were in a fork, others change when yet others do.
        __sandbox_write_lines "$(builtin shopt -p; builtin set +o)"
        builtin printf 'builtin set -o %s\n' "${__sandbox_set//:/$'\nbuiltin set -o '}"
        builtin printf 'builtin shopt -s %s\n' "${__sandbox_shopt//:/$'\nbuiltin shopt -s '}"
        __sandbox_text=$'\n'$__sandbox_traps
        builtin printf '%s\n__sandbox_state=kept\n' "${__sandbox_text//$'\ntrap -- '/$'\nbuiltin trap -- '}"
}

__sandbox_write_lines() {
        builtin printf 'builtin %s\n' "${1//$'\n'/$'\nbuiltin '}"
}

# In the new shell, after that script.
__sandbox_resumed() {
        builtin local __sandbox_name
        for __sandbox_name in ERR DEBUG RETURN; do
                [[ ! ${__sandbox_actions[$__sandbox_name]-} ]] ||
                        builtin trap -- "${__sandbox_guards[$__sandbox_name]}" "$__sandbox_name"
        done
        [[ $__sandbox_state == kept || ! $__sandbox_operation ]] || __sandbox_end
        __sandbox_report "$__sandbox_state"
}

# ---- traps

# The user's actions for EXIT, ERR, DEBUG and RETURN are kept in __sandbox_actions, and the shell has guards,
# which evaluate them unless it is about the driver. This wrapper makes it look as if there were no guards.
__sandbox_wrap_trap() {
        trap() {
                { builtin local -; builtin set +x; } 2>/dev/null
                if (($# == 0)) || [[ $1 == -p ]]; then
                        __sandbox_list_traps "${@:2}"
                elif [[ $1 == -[lP] ]]; then
                        builtin trap "$@"
                else
                        __sandbox_set_traps "$@"
                fi
        }
}

__sandbox_set_traps() {
        builtin local __sandbox_action __sandbox_each __sandbox_name __sandbox_failed
        __sandbox_action=- __sandbox_failed=0
        [[ $1 != -- ]] || builtin shift
        # One argument, or a number as the first, means that all are signals to reset.
        if (($# > 1)) && [[ ! $1 || $1 == *[!0-9]* ]]; then
                __sandbox_action=$1
                builtin shift
        fi
        for __sandbox_each; do
                __sandbox_name_signal "$__sandbox_each"
                case $BASHPID:$__sandbox_action:$__sandbox_name in
                *:ERR | *:DEBUG | *:RETURN | "$$":*:EXIT)
                        __sandbox_actions[$__sandbox_name]=$__sandbox_action
                        [[ $__sandbox_action != - ]] || __sandbox_actions[$__sandbox_name]=
                        builtin trap -- "${__sandbox_guards[$__sandbox_name]}" "$__sandbox_name"
                        ;;
                "$$":-:HUP | "$$":-:INT | "$$":-:USR1 | "$$":-:USR2 | "$$":-:TERM)
                        builtin trap -- "${__sandbox_guards[$__sandbox_name]}" "$__sandbox_name"
                        ;;
                *)      # those of a subshell end nothing but the subshell
                        [[ $__sandbox_name != EXIT ]] || __sandbox_actions[EXIT]=
                        if ! builtin trap -- "$__sandbox_action" "$__sandbox_each" 2>/dev/null; then
                                __sandbox_bad_signal "$__sandbox_each"
                                __sandbox_failed=1
                        fi
                        ;;
                esac
        done
        builtin return "$__sandbox_failed"
}

# Sets __sandbox_name to the name, without SIG, of a signal that has a guard.
__sandbox_name_signal() {
        __sandbox_name=${1^^}
        __sandbox_name=${__sandbox_name#SIG}
        case $__sandbox_name in
        0) __sandbox_name=EXIT ;;
        1) __sandbox_name=HUP ;;
        2) __sandbox_name=INT ;;
        10) __sandbox_name=USR1 ;;
        12) __sandbox_name=USR2 ;;
        15) __sandbox_name=TERM ;;
        esac
}

# What bash says, but with the line that trap was called on.
__sandbox_bad_signal() {
        builtin printf 'bash: line %d: trap: %s: invalid signal specification\n' "${BASH_LINENO[2]}" "$*" >&2
}

# The shell's own list without the guards, and with the user's actions instead.
__sandbox_list_traps() {
        builtin local __sandbox_text __sandbox_name __sandbox_each
        if ! __sandbox_text=$(builtin trap -p "$@" 2>/dev/null); then
                __sandbox_bad_signal "$@"
                builtin return 1
        fi
        __sandbox_text+=$'\n'
        for __sandbox_name in "${!__sandbox_guards[@]}"; do
                for __sandbox_each in "$__sandbox_name" "SIG$__sandbox_name"; do
                        __sandbox_each="trap -- '${__sandbox_guards[$__sandbox_name]}' $__sandbox_each"$'\n'
                        __sandbox_text=${__sandbox_text//"$__sandbox_each"}
                done
        done
        (($# > 0)) || builtin set -- EXIT DEBUG ERR RETURN
        for __sandbox_each; do
                __sandbox_name_signal "$__sandbox_each"
                case $__sandbox_name:${__sandbox_actions[$__sandbox_name]-} in
                EXIT:?* | DEBUG:?* | ERR:?* | RETURN:?*)
                        __sandbox_each=${__sandbox_actions[$__sandbox_name]}
                        builtin printf 'trap -- %s %s\n' "${__sandbox_each@Q}" "$__sandbox_name"
                        ;;
                esac
        done
        [[ $__sandbox_text == $'\n' ]] || builtin printf %s "$__sandbox_text"
}
