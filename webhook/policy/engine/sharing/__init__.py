"""Runs a policy once for pod templates and objects that are equal in all that it reads (`forms`).

- `template_forms`: the forms of the templates of one object
- `shared_runs`: runs a policy once for all objects with the form of this one

A policy that reads a stand-in is run on the template or object itself (decisions 0153 and 0159). Begin with
`template_forms.Forms`.
"""
