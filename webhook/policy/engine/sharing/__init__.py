"""Runs a policy once for pod templates and objects that are equal in all that it reads.

- `template_forms`: finds templates that differ only in values that hardly any policy reads; the rest is their
  *form*, in which each of these values is a *stand-in*
- `equal_objects`: the same for the new objects of many requests and for their only templates
- `no_effect`: the policies that do nothing to such objects, which are not even begun

A policy that reads a stand-in is run on the template or object itself (decisions 0153 and 0159). Begin with
`template_forms.Form`.
"""
