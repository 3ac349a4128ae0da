"""What a replay found, as numbers and as sentences."""

from dataclasses import dataclass


@dataclass
class ReplayReport:
    """What a replay went through, and found to be as the log says."""

    contexts: int = 0
    pages: int = 0
    explored: int = 0
    learnt: int = 0
    versions: int = 0
    publications: int = 0
    snapshots: int = 0
    rollbacks: int = 0
    resets: int = 0
    alarms: int = 0
    lost: int = 0
    foreign: int = 0
    pruned: int = 0
    untold: int = 0
    legal: int = 0

    def sentences(self) -> list[str]:
        """For people."""
        lost = (
            f"{self.lost} issued pages without clicks are missing: a crash took them"
            if self.lost
            else "no page is missing"
        )
        foreign = (
            f"; {self.foreign} pages came back after the restore from a backup and name later versions"
            if self.foreign
            else ""
        )
        begin = (
            f"{self.pruned} of them from their oldest kept snapshot on, because older pages were deleted (keep_days "
            f"or forget); {self.untold} versions from before are taken as they are written"
            if self.pruned
            else "from the beginning, without snapshots"
        )
        return [
            f"folded {self.pages} pages of {self.contexts} contexts, {begin}: "
            f"{self.explored} explored, clicks of {self.learnt} learnt",
            f"every page record has its checksum and names a version of the knowledge that was there; {lost}{foreign}",
            "every page that was written is there, unless it was deleted by keep_days or forget",
            f"{self.legal} explored pages were checked again: each was legal under the version that it names",
            f"all {self.versions} versions follow from the log, with their leaders and certificates "
            f"({self.rollbacks} rollbacks, {self.resets} resets, {self.alarms} contradictions)",
            f"all {self.publications} publications and {self.snapshots} snapshots are equal to the fold, bit for bit",
        ]
