import type { FoundSwitches, SwitchAnswer } from '../admission/degrade/switches.js';

type Switched = Extract<SwitchAnswer, { outcome: 'switched' }>;

/** All switches as admins read them. */
export const switchesBody = ({ version, mode, switches }: FoundSwitches): object => ({ version, mode, switches });

/** What became of one. */
export const switchedBody = ({ outcome, version, seenAtOnce, row }: Switched): object => ({
  ...{ outcome, version, seenAtOnce },
  ...row,
});
