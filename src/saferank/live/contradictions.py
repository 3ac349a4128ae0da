"""Certificates that cannot all be right: cycles of items each of which was declared better than the next."""

from saferank.live.page import Item


def cycle_of(beats: dict[Item, list[Item]]) -> tuple[Item, ...] | None:
    """A cycle of the graph, or None; depth first, without recursion."""
    done: set[Item] = set()
    for root in beats:
        path: list[Item] = [root]
        ways = [iter(beats.get(root, ()))]
        while path and root not in done:
            following = next(ways[-1], None)
            if following is None:
                done.add(path.pop())
                ways.pop()
            elif following in path:
                return tuple(path[path.index(following) :])
            elif following not in done:
                path.append(following)
                ways.append(iter(beats.get(following, ())))
    return None
