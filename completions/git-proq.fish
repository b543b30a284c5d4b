complete --keep-order --exclusive --command git-proq --arguments "(PROQ_COMPLETE=fish git-proq -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"

function __git_proq_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l dirs
    if set -l at (contains --index -- proq $words)
        for n in (seq 2 (math $at - 1))
            test $words[$n] = -C; and set --append dirs $words[$n..(math $n + 1)]
        end
        set --erase words[1..$at]
    end
    PROQ_COMPLETE=fish git-proq -- git-proq $dirs $words (commandline --current-token)
end
complete --no-files --command git --condition __fish_git_needs_command --arguments proq --description 'Run coding agents in lanes'
complete --keep-order --exclusive --command git --condition '__fish_git_using_command proq' --arguments '(__git_proq_complete)'
