complete --keep-order --exclusive --command git-proq --arguments "(PROQ_COMPLETE=fish git-proq -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"

function __git_proq_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l at (contains --index -- proq $words)
    and set --erase words[1..$at]
    PROQ_COMPLETE=fish git-proq -- git-proq $words (commandline --current-token)
end
complete --keep-order --exclusive --command git --condition '__fish_git_using_command proq' --arguments '(__git_proq_complete)'
