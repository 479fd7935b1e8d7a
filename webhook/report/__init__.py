"""What each policy and the plan would do to each object, in the format that its reader wants.

Read `model` first; each format is one file with one `write`, and `formats` is the table of them.
"""
