"""Policies read from files: all of them or none, with every problem and its line.

From the file inward: `files` (disk, Git) -> `document` (YAML with line numbers) -> `load` (which document
is what) -> `read`, `read_match`, `read_exemption`, `fields` (the schema, field by field) -> `expressions`
(compiled; `variable_fields`: the fields that `gang`, `plan` and `cluster` have). `parameters` checks
parameter objects against the JSON schema beside them; `webhooks` reads which objects a webhook is asked
about; `errors` is what everything raises.

Begin with `load.load`.
"""
