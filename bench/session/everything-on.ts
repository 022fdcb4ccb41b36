import { keyIdsOf } from '../attack/attack-rules.js';
import type { Dress, AdmissionKeys } from '../load/dressed-buyers.js';
import type { RulesAdmin } from './rules.js';

/** Layers that an api may have beside lists and limits. */
const MORE_LAYERS = ['sign', 'queue', 'breaker', 'degrade'] as const;
export type MoreLayer = (typeof MORE_LAYERS)[number];

/** Which of them the running api has. */
export async function layersKnown(admin: Pick<RulesAdmin, 'knows'>): Promise<readonly MoreLayer[]> {
  const known: MoreLayer[] = [];
  for (const layer of MORE_LAYERS) if (await admin.knows(layer)) known.push(layer);
  return known;
}

/** Every layer looks at everybody, and nobody is refused by one: all who ask come from one address and come once. */
export function everythingOn(known: readonly MoreLayer[], { sign }: AdmissionKeys): object {
  const wide = { limit: 1_000_000, windowMs: 10_000 };
  const global = { ratePerSecond: 1_000_000, burst: 1_000_000 };
  const networks = Array.from({ length: 1000 }, (_, index) => `172.${16 + (index >> 8)}.${index & 255}.0/24`);
  const more: Record<MoreLayer, object> = {
    sign: { mode: 'on', keys: keyIdsOf(sign), tokens: { mode: 'on' } },
    queue: { mode: 'on' },
    breaker: { mode: 'on' },
    degrade: { mode: 'on' },
  };
  return {
    lists: {
      mode: 'on',
      addresses: { deny: [...networks, '203.0.113.7', '2001:db8::/32'] },
      agents: { deny: ['python-requests', 'headless', 'sqlmap'] },
      users: { deny: ['nobody'] },
    },
    limits: {
      mode: 'on',
      purchase: { ip: wide, user: wide, global, subjectsMax: 1_000_000 },
      leaky: { ratePerSecond: 1_000_000, waitMaxMs: 1000 },
    },
    ...Object.fromEntries(known.map((layer) => [layer, more[layer]])),
  };
}

/** What buyers have to show then. */
export const dressFor = (known: readonly MoreLayer[]): Dress => ({
  signed: known.includes('sign'),
  purchaseToken: known.includes('sign'),
  queuePass: known.includes('queue'),
});
