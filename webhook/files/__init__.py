"""Reads YAML and JSON files from disk, each object with its file and line.

`reader.documents` and `reader.objects` read files and folders; `folders` lists the files of a folder, for
every command alike; `yaml_documents` parses text within limits that protect against hostile files; `junit`
writes test results as XML for CI systems. Begin with `reader`.
"""
