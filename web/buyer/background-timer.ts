/// <reference lib="webworker" />
// Runs timers in a worker. Browsers slow down the timers of a page in the background to one call a minute, but not the
// timers of its worker. Without the worker, a place in the waiting room would be lost. Receives a number of ms and
// sends it back after that time.

import { after } from '../../src/core/after.js';

onmessage = ({ data }: MessageEvent<{ readonly id: number; readonly ms: number }>) => {
  after(data.ms, () => postMessage(data.id));
};
