// Loaded before a program. Who asks it for its heap hears what is in use, without the garbage that lies on top: between two
// collections that is a third of the heap, and each look would find another amount of it.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const { memoryUsage } = process;
const afterCollection = (): NodeJS.MemoryUsage => {
  collectGarbage();
  return memoryUsage();
};
process.memoryUsage = Object.assign(afterCollection, { rss: () => memoryUsage.rss() });
