"""What each policy and the plan would do to each object, in the format that its reader wants.

`collect` makes a `model.Report` of decisions; each format is one file with one `write`, and `formats` is the
table of them. Begin with `model`.
"""
