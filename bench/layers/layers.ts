import { runChild } from '../load/child.js';
import type { LayerCost } from './cost.js';

export interface LayersTask {
  readonly redisUrl: string;
  /** Counted time of each case that asks Redis. */
  readonly ms: number;
}

/** Measures every admission layer in a process that does nothing else. */
export const measureLayers = (task: LayersTask, signal: AbortSignal): Promise<LayerCost[]> =>
  runChild<LayersTask, LayerCost[]>(new URL('./layers-child.ts', import.meta.url), task, signal);
