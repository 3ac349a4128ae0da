// @azure/cognitiveservices-personalizer 2.0.1: rank, reward, deferred activation, a refusal. Prints what came back.
const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");
const { ApiKeyCredentials } = require("@azure/ms-rest-js");

const [address, key] = process.argv.slice(2);
const actions = ["pasta", "soup", "salad"].map((id) => ({ id, features: [{ taste: "good" }] }));

async function main() {
  const credentials = new ApiKeyCredentials({ inHeader: { "Ocp-Apim-Subscription-Key": key } });
  const client = new PersonalizerClient(credentials, address);
  const ranked = await client.rank({ contextFeatures: [{ day: "monday" }], actions, eventId: "node-1" });
  await client.events.reward("node-1", { value: 1 });
  const deferred = await client.rank({ actions, excludedActions: ["pasta"], deferActivation: true });
  await client.events.reward(deferred.eventId, { value: 1 });
  await client.events.activate(deferred.eventId);
  let refusal = null;
  try {
    await client.rank({ actions: [actions[0], actions[0]] });
  } catch (error) {
    refusal = { status: error.statusCode, code: error.body.error.code, target: error.body.error.target };
  }
  const plain = ({ ranking, eventId, rewardActionId }) => ({ ranking, eventId, rewardActionId });
  console.log(JSON.stringify({ ranked: plain(ranked), deferred: plain(deferred), refusal }));
}

main().catch((error) => { console.error(error); process.exit(1); });
