"""YAML and JSON files read from disk, each object with its file and line.

`reader.documents` and `reader.objects` read paths; `yaml_documents` parses text, within bounds that a hostile
file meets; `junit` writes the XML that CI systems show. Begin with `reader`.
"""
