"""The one walker of stacks: it works on plain values and knows neither rows nor threads.

runtime      what all trees of an engine share
definitions  the definition of a stored stack
store        where trees live between two turns: in memory, or in rows
"""
