"""The live service: a page is a function of the knowledge, and the knowledge is a fold of the log.

    http -> server -> calls -> protocol -> knowledge -> store

``server`` puts the parts together and is the only door between HTTP and the rest, ``wire`` holds what goes through it.
``import-linter`` keeps the arrows.
"""
