"""`python -m jackfield` is the command `jackfield`. Must not know more than that."""

from jackfield.cli.main import main

main()
