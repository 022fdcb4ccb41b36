// Loaded before a program. A collector with gigabytes of room lets garbage lie for minutes, and a heap that fills looks
// like one that leaks: collected every 10 s, it holds what is still in use.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const EVERY_MS = 10_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
setInterval(collectGarbage, EVERY_MS).unref();
