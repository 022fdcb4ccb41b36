/** Priority classes; a smaller number goes in before a larger one. */
export const CLASSES = ['P0', 'P1', 'P2'] as const;
export type PriorityClass = 0 | 1 | 2;

/** The class that the claim `roles` of a token gives: `queue-p0` and `queue-p1` go first, everybody else is P2. */
export function classOf(roles: readonly string[]): PriorityClass {
  if (roles.includes('queue-p0')) return 0;
  return roles.includes('queue-p1') ? 1 : 2;
}

/** As a ticket has it. */
export function readClass(text: string | undefined): PriorityClass | null {
  if (text === '0') return 0;
  if (text === '1') return 1;
  return text === '2' ? 2 : null;
}
