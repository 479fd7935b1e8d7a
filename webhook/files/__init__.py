"""Reads YAML and JSON files from disk, each object with its file and line.

`reader.documents` and `reader.objects` read paths; `yaml_documents` parses text within limits that protect
against hostile files; `junit` writes the XML that CI systems show. Begin with `reader`.
"""
