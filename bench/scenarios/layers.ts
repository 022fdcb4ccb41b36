import { measureLayers } from '../layers/layers.js';
import type { LayersFigures } from '../results.js';
import { secondsOf, type Context } from './context.js';

/** What each admission layer costs per request, on and off: in process, where a socket would hide it. */
export async function layers(context: Context): Promise<LayersFigures> {
  const { session } = context;
  session.say('layers: each admission layer, on and off');
  const task = { redisUrl: session.stack.env().REDIS_URL, ms: secondsOf(context, 'layers') * 1000 };
  return { kind: 'layers', scenario: 'layers', costs: await measureLayers(task, session.signal) };
}
