# SPDX-License-Identifier: MIT
# fish completion for sandboxctl(1). Names of sessions and environments are asked for quietly, and only from this
# machine's daemon: a completion must not start ssh.

# The verb of the command line, or nothing.
function __sandboxctl_verb
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --socket -H --host
                set -e words[1]
            case '-*'
            case '*'
                echo $words[1]
                return 0
        end
        set -e words[1]
    end
    return 1
end

function __sandboxctl_verb_is
    contains -- (__sandboxctl_verb; or echo none) $argv
end

function __sandboxctl_names
    set -l words (commandline -opc)
    set -l global
    if contains -- -H $words; or contains -- --host $words
        return
    end
    if set -l i (contains -i -- --socket $words)
        set global --socket $words[(math $i + 1)]
    end
    sandboxctl $global --json $argv[1] 2>/dev/null </dev/null | string match -ra '"name":"[A-Za-z0-9][A-Za-z0-9_-]*"' |
        string replace -r '.*:"(.*)"' '$1' | sort -u
end

complete -c sandboxctl -f
complete -c sandboxctl -n 'not __sandboxctl_verb' -s H -l host -x -a '(__fish_print_hostnames)' -d 'Daemon of another machine'
complete -c sandboxctl -n 'not __sandboxctl_verb' -l socket -r -F -d 'Socket of the daemon'
complete -c sandboxctl -n 'not __sandboxctl_verb' -l json -d 'Machine-readable output'
complete -c sandboxctl -n 'not __sandboxctl_verb' -l no-ask-password -d 'polkit is not to ask'
complete -c sandboxctl -n 'not __sandboxctl_verb' -l version -d 'Version'
complete -c sandboxctl -n 'not __sandboxctl_verb' -s h -l help -d 'Help'

complete -c sandboxctl -n 'not __sandboxctl_verb' -a run -d 'Run code'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a list -d 'Your sessions'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a top -d 'The sessions as they change'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a show -d 'All about one session'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a stats -d 'What sessions have used'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a set -d 'Change limits of a session'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a kill -d 'End sessions'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a freeze -d 'Stop sessions until they are thawed'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a thaw -d 'Let them go on'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a interrupt -d 'Stop the turn that runs'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a history -d 'The turns of a session'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a vars -d 'The variables of a session'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a rollback -d 'Take python back to an earlier state'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a get -d 'Copy a file out of a session'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a put -d 'Copy a file into a session'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a save -d 'Keep the state of a session now'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a snapshots -d 'What is kept of sessions'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a restore -d 'A session from what was kept of one'
complete -c sandboxctl -n '__sandboxctl_verb_is save snapshots restore' -a '(__sandboxctl_names list)'
complete -c sandboxctl -n '__sandboxctl_verb_is save snapshots' -s a -d 'Also of other users'
complete -c sandboxctl -n '__sandboxctl_verb_is restore' -l snapshot -x -d 'Another one than the newest'
complete -c sandboxctl -n '__sandboxctl_verb_is restore' -l project-mode -x -a 'none read-only read-write' -d 'How the project is mounted'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a events -d 'What happened to sessions'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a audit -d 'The audit trail'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a envs -d 'Environments'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a doctor -d 'What this machine offers'
complete -c sandboxctl -n 'not __sandboxctl_verb' -a reload -d 'Take up a changed configuration'

complete -c sandboxctl -n '__sandboxctl_verb_is run' -s e -l env -x -a '(__sandboxctl_names envs)' -d Environment
complete -c sandboxctl -n '__sandboxctl_verb_is run vars' -s i -l interpreter -x -a 'python bash node' -d Interpreter
complete -c sandboxctl -n '__sandboxctl_verb_is run' -s s -l session -x -a '(__sandboxctl_names list)' -d Session
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l timeout -x -d 'Seconds for the turn'
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l memory -x -d 'Memory limit in MB'
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l cpus -x -d 'CPU limit'
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l network -x -d 'What alone it may reach'
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l project -x -a '(__fish_complete_directories)' -d 'What to mount at /project'
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l project-mode -x -a 'none read-only read-write' -d 'How it is mounted'
complete -c sandboxctl -n '__sandboxctl_verb_is run' -l pictures -x -a '(__fish_complete_directories)' -d 'Where to write pictures'
complete -c sandboxctl -n '__sandboxctl_verb_is history' -l replay -x -d 'Run the turns again in a new session'

set -l several kill freeze thaw interrupt
complete -c sandboxctl -n "__sandboxctl_verb_is list top show stats set history events $several" -s a -d "Other users' sessions, too"
complete -c sandboxctl -n "__sandboxctl_verb_is show stats set history vars rollback get put $several" -a '(__sandboxctl_names list)' -d Session
complete -c sandboxctl -n "__sandboxctl_verb_is $several" -l all -d 'All sessions'
complete -c sandboxctl -n "__sandboxctl_verb_is $several" -l user -x -a '(__fish_complete_users)' -d 'Sessions of a user'
complete -c sandboxctl -n "__sandboxctl_verb_is $several" -s y -l yes -d 'Do not ask'
complete -c sandboxctl -n '__sandboxctl_verb_is set' -a 'memory= cpus= processes= cpu-weight= io-read= io-write=' -d Limit
complete -c sandboxctl -n '__sandboxctl_verb_is set' -l allow -x -d 'What it may reach besides'
complete -c sandboxctl -n '__sandboxctl_verb_is top' -s b -d 'Without a screen'
complete -c sandboxctl -n '__sandboxctl_verb_is top' -s d -x -d 'Seconds between updates'
complete -c sandboxctl -n '__sandboxctl_verb_is top' -s n -x -d 'Number of updates'
complete -c sandboxctl -n '__sandboxctl_verb_is events' -s f -d Follow
complete -c sandboxctl -n '__sandboxctl_verb_is audit' -s f -l file -r -F -d 'The trail'
complete -c sandboxctl -n '__sandboxctl_verb_is audit' -s n -l lines -x -d 'How many lines'
complete -c sandboxctl -n '__sandboxctl_verb_is audit' -l expect -x -d 'Its end, SEQ:HASH'
complete -c sandboxctl -n '__sandboxctl_verb_is audit' -a verify -d 'Whether it is as it was written'
