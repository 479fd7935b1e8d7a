"""Reads policies from files: all of them or none, and reports every problem with its line.

- `load`: sorts the documents of files by kind, and makes a `PolicySet` of them
- `files`: policies on disk and in Git; `document`: YAML with line numbers
- `read`, `read_match`, `read_exemption`, `fields`: read the schema, field by field
- `expressions`: compiles expressions; `variable_fields`: the fields of `gang`, `plan` and `cluster`
- `parameters`: checks parameter objects against the JSON schema beside them
- `webhooks`: reads which objects a webhook is called for
- `errors`: the errors that all of them raise

Begin with `load.load`.
"""
