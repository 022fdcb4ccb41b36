import { z } from 'zod';
import { LEVELS } from '../admission/degrade/degrade.js';
import { ENDPOINTS, mode } from '../admission/layer.js';
import { canaryTerms } from '../admission/rules/canary.js';
import { must } from '../core/field-errors.js';
import { BREAKER_STATES } from '../core/ports/admission-stores.js';
import { count, text, time, type BodyOf } from './fields.js';
import { fieldErrorList } from './problem.js';

/** Rules in the form in which `show` prints them, so that they can be edited and sent back. */
export const rulesDocument = z
  .strictObject({
    version: z
      .int({ error: must('a whole number') })
      .min(0, 'must not be negative')
      .optional()
      .meta({ description: 'the version that these rules are based on; 0 if none were published' }),
    rules: z
      .unknown()
      .refine((value) => value !== undefined, 'is missing: it must be an object')
      .meta({
        override: {
          type: 'object',
          description: 'one part per layer of admission; each has a `mode`: off, dry_run or on',
        },
      }),
  })
  .meta({ id: 'Rules' });
export const storedRules = rulesDocument.required();
/** Rules to publish name their version. A separate sentence says if it is missing. */
export const publishedDocument = rulesDocument.extend({
  canary: canaryTerms
    .optional()
    .meta({ description: 'a share of users tries the rules first; the keeper then promotes them or rolls them back' }),
});
export const rulesToPublish = publishedDocument.required({ version: true }).meta({ id: 'RulesToPublish' });
export const canaryAction = z
  .strictObject({ action: z.enum(['promote', 'rollback']) })
  .meta({ id: 'RulesCanaryAction' });
export const publishedRules = z.object({ outcome: z.literal('published'), version: count, seenAtOnce: z.boolean() });
export const checkedRules = z.object({ valid: z.boolean(), errors: fieldErrorList });

const rulesOfApi = z
  .object({
    host: text,
    pid: count,
    version: count
      .nullable()
      .meta({ description: 'the version in force; null if the api has no rules and admits no buyer' }),
    follows: z.boolean(),
    refused: z.object({ version: count, reasons: z.array(text) }).nullable(),
  })
  .meta({ id: 'RulesOfApi' });
const answerCount = z.object({ accepted: count, refused: count });
const canary = canaryTerms
  .required()
  .extend({
    since: count.meta({ description: 'the version that began the canary' }),
    tried: answerCount.meta({ description: 'answers to purchases of its users, in all running apis' }),
    others: answerCount,
  })
  .meta({ id: 'RulesCanary' });
export const rulesStatus = z.object({
  version: count,
  inForce: z.enum(['everywhere', 'not_everywhere', 'nowhere']),
  apis: z.array(rulesOfApi),
  canary: canary.nullable(),
});

const ruleChange = z.object({ version: count, actor: text, at: time }).meta({ id: 'RuleChange' });
export const ruleChanges = z.object({ changes: z.array(ruleChange) });

const breaker = z
  .object({
    name: text,
    state: z.enum(BREAKER_STATES),
    sinceMs: count.nullable().meta({ description: 'Unix ms; null if unknown' }),
    by: text.meta({ description: '`shared`, or host and process id of an api' }),
  })
  .meta({ id: 'Breaker' });
export const breakers = z.object({ mode, breakers: z.array(breaker) });

export const percent = z.number().min(0).max(100);
const switchFields = { endpoint: z.enum(ENDPOINTS), level: z.enum(LEVELS), percent, inForce: z.boolean() };
const oneSwitch = z.object(switchFields);
export const switches = z.object({ version: count, mode, switches: z.array(oneSwitch) });
export const switched = z.object({
  outcome: z.literal('switched'),
  version: count,
  seenAtOnce: z.boolean(),
  ...switchFields,
});

export const roomRate = z
  .strictObject({ admitPerSecond: z.number().min(0).max(100_000) })
  .meta({ id: 'WaitingRoomRate' });
export const rateSet = z.object({
  outcome: z.literal('rate_set'),
  version: count,
  seenAtOnce: z.boolean(),
  admitPerSecond: z.number(),
});
export const steerRoom = z
  .discriminatedUnion('action', [
    z.strictObject({ action: z.literal('admit'), buyers: z.int().min(1).max(1_000_000) }),
    z.strictObject({ action: z.literal('empty') }),
  ])
  .meta({ id: 'WaitingRoomAction' });
export const room = z
  .object({
    version: count,
    mode: mode.meta({ description: '`off` if the sale has no waiting room' }),
    admitPerSecond: z.number(),
    waiting: count,
    admitted: count.meta({ description: 'buyers whose turn has come since the room was last emptied' }),
    estimateMs: count.nullable().meta({
      description:
        'time until the turn of the last buyer, counted from the opening of the sale if it has not opened; null while the rooms are paused',
    }),
  })
  .meta({ id: 'WaitingRoom' });
export const roomSteered = z.object({ outcome: z.enum(['admitted', 'emptied']), buyers: count });

export type WaitingRoom = BodyOf<typeof room>;
export type RulesDocument = BodyOf<typeof rulesDocument>;
export type RulesCanary = BodyOf<typeof canary>;
export type RulesStatus = BodyOf<typeof rulesStatus>;
export type RuleChange = BodyOf<typeof ruleChange>;
export type CheckedRules = BodyOf<typeof checkedRules>;
export type Breakers = BodyOf<typeof breakers>;
export type Switch = BodyOf<typeof oneSwitch>;
export type Switches = BodyOf<typeof switches>;
export type Switched = BodyOf<typeof switched>;
