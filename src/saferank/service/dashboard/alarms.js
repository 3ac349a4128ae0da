// What alarms mean, in words for an operator.

const KINDS = {
  illegal_page: "A page failed the check before serving; production's was shown instead",
  contradiction: "Decided pairs contradicted each other and were dropped; the world may have changed",
  exchange_share: "Reported pages are no fair sample of those that were drawn: a caller chooses what it reports by the order",
  unbalanced_arms: "Served pages and the holdout are not in the promised ratio: the effect is withheld",
  not_closed: "Pages of this context cannot be learnt from; production's ranking is served",
  guardrail: "Served pages lost more than allowed against the holdout; production's ranking is served",
};

export const alarmWords = (kind) => KINDS[kind] ?? kind.replaceAll("_", " ").replace(/^./, (c) => c.toUpperCase());
