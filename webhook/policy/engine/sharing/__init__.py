"""Runs a policy once for pod templates and objects that are equal in all that it reads.

- `forms`: the *form* of what differs only in values that hardly any policy reads; each of these values is a
  *stand-in* in it
- `template_forms`: the forms of the templates of one object
- `equal_objects`: the forms of the new objects of many requests and of their only templates
- `shared_runs`: runs a policy once for all objects with such a form
- `no_effect`: the policies that do nothing to such objects, which are not even begun

A policy that reads a stand-in is run on the template or object itself (decisions 0153 and 0159). Begin with
`forms.Form`.
"""
