import { z } from 'zod';
import { readNetwork } from '../../core/ip-address.js';
import { isId } from '../../core/ids.js';
import { mode } from '../mode.js';

/** Addresses and users are found by hash, whatever their number; this bounds the size of the rules. */
const LISTED_MAX = 10_000;
/** Every part of a user agent is looked for in every request, one after the other. */
const AGENTS_MAX = 100;
const AGENT_LENGTH_MAX = 200;

const network = z
  .string()
  .refine(
    (text) => readNetwork(text) !== null,
    'must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32',
  );
const agent = z.string().trim().min(1, 'must not be empty').max(AGENT_LENGTH_MAX);
const user = z.string().refine(isId, 'must be the id of a user');

const allowAndDeny = <T extends z.ZodType>(entry: T, max: number) =>
  z
    .strictObject({ allow: z.array(entry).max(max).default([]), deny: z.array(entry).max(max).default([]) })
    .prefault({});

/** Who may come in at all. In each list `allow` beats `deny`; what stands in neither may come in. */
export const listsRules = z.strictObject({
  mode: mode.default('off'),
  /** IP addresses and networks. */
  addresses: allowAndDeny(network, LISTED_MAX),
  /** Parts of a user agent, in upper or lower case. */
  agents: allowAndDeny(agent, AGENTS_MAX),
  /** Ids of users, as their tokens name them. */
  users: allowAndDeny(user, LISTED_MAX),
});
export type ListsRules = z.infer<typeof listsRules>;
