"""One module a subcommand of ``scale-qa``; `scale_qa.cli` finds them by itself.

A module exposes ``add_parser(subparsers)``, which adds its parser and calls
``parser.set_defaults(handler=function)``; the function takes the parsed arguments and returns an exit status.
Heavy imports belong into that function, so that ``scale-qa --help`` stays fast.
"""
