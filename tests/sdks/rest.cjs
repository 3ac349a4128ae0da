// @azure-rest/ai-personalizer 1.0.0-beta.1: rank, reward, activate, the same for slots, configuration, a refusal.
const { default: createClient } = require("@azure-rest/ai-personalizer");

const [address, key] = process.argv.slice(2);
const actions = ["pasta", "soup", "salad", "cake"].map((id) => ({ id, features: [{ taste: "good" }] }));
const slots = [
  { id: "top", baselineAction: "soup", features: [] },
  { id: "side", baselineAction: "cake", features: [] },
];

async function main() {
  const client = createClient(address, { key }, { allowInsecureConnection: true });
  const ask = async (path, ...rest) => {
    const body = rest.pop();
    const answer = await client.path(path, ...rest).post(body === undefined ? {} : { body });
    if (Number(answer.status) >= 400) throw answer.body.error; // isUnexpected() of this version fails for paths with ids
    return answer;
  };
  const ranked = await ask("/rank", { actions, eventId: "rest-1" });
  const rewarded = await ask("/events/{eventId}/reward", "rest-1", { value: 0.5 });
  const deferred = await ask("/rank", { actions, eventId: "rest-2", deferActivation: true });
  const activated = await ask("/events/{eventId}/activate", "rest-2", undefined);
  const slotted = await ask("/multislot/rank", { actions, slots, eventId: "rest-3", deferActivation: true });
  const given = [{ slotId: "side", value: 1 }, { slotId: "top", value: 0 }];
  const slotReward = await ask("/multislot/events/{eventId}/reward", "rest-3", { reward: given });
  const slotActivated = await ask("/multislot/events/{eventId}/activate", "rest-3", undefined);
  const configuration = await client.path("/configurations/service").get();
  const refusal = await ask("/rank", { actions: [] }).catch((error) => error);
  const statuses = [ranked, rewarded, deferred, activated, slotted, slotReward, slotActivated, configuration];
  console.log(JSON.stringify({
    ranked: ranked.body, slotted: slotted.body, configuration: configuration.body, refusal,
    statuses: statuses.map((answer) => answer.status),
  }));
}

main().catch((error) => { console.error(error); process.exit(1); });
