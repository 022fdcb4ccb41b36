import type { Connections } from '../../process/connections.js';
import { createWitnessStore, type WitnessStore } from './witness-store.js';

/** The service that the routes and commands of the witness need. */
export interface WitnessServices {
  readonly witness: Pick<WitnessStore, 'list' | 'close'>;
}

export const openWitness = (connections: Connections<'mysql' | 'redis'>): WitnessServices => ({
  witness: createWitnessStore(connections.mysql()),
});
