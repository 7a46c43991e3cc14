"""The search in numbers: incidence rows and the two kernels that walk them. Integers in, integers out."""
