"""Searches that ask one question many times: which pass, which instructions, how small.

The files of this folder are pure: they get a space and an oracle and know nothing of HLO, files or terminals,
except `journal`, which keeps answers on disk. `bisection/` and `reduction/` say what is searched.
"""
