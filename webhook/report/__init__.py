"""What each policy and the plan would do to each object, in the format that its reader wants.

`collect` makes a `model.Report` of decisions; `formats` is the table of the formats, a file each with one
`write`. `offender` and `lines` find the field and the line that a result points at; `in_cluster` keeps the
Reports that replicas write; `terminal` and `documents` print tables, JSON and YAML for every command. Begin
with `model`.
"""
