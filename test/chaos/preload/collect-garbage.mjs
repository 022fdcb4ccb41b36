// Loaded before a program, so that its heap is measured after a collection. Between two collections, garbage is a third
// of the heap, and each measurement would find a different amount.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const { memoryUsage } = process;
const afterCollection = () => {
  collectGarbage();
  return memoryUsage();
};
process.memoryUsage = Object.assign(afterCollection, { rss: () => memoryUsage.rss() });
