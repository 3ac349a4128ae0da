// What alarms mean, in words for an operator.

const KINDS = {
  illegal_page: "A page failed the check before serving; production's was shown instead",
  contradiction: "Decided pairs contradicted each other and were dropped; the world may have changed",
  exchange_share: "Clicked pages have items where they were not drawn to: reports are chosen by order",
  unbalanced_arms: "Served and held out pages are not in the ratio of the coins: the effect is withheld",
  not_closed: "Pages of this context cannot be learnt from; production's ranking is served",
  damage: "The store is damaged: restore it from a backup",
  guardrail: "Served pages lost more than allowed against the holdout; production's ranking is served",
};

export const alarmWords = (kind) => KINDS[kind] ?? kind.replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase());
