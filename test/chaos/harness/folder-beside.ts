import type { Arena } from '../arena.js';

/** Where a second stack of a row lives: beside the folder of the first, so that it is ignored as that is. */
export const folderBeside = ({ stack }: Arena, name: string): string => `${stack.servers.dir}-${name}`;
