/// <reference lib="webworker" />
// Browsers slow the timers of a page in the background down to one a minute, and not those of its worker: a place in the waiting
// room would be lost. Takes a number of ms, and sends it back when they are over.

import { after } from '../../src/core/after.js';

onmessage = ({ data }: MessageEvent<{ readonly id: number; readonly ms: number }>) => {
  after(data.ms, () => postMessage(data.id));
};
