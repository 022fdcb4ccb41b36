import { z } from 'zod';
import { fieldErrors, fieldSentences, must, plainError } from '../field-errors.js';
import { isLoopback } from '../ip-address.js';
import { parseJson } from '../parse-json.js';
import { PUBLIC_ALGORITHMS, readPublicKey, type Jwk } from '../public-key.js';
import { ROLES } from '../roles.js';

/** A shop has one identity provider, or two while it changes. */
const ISSUERS_MAX = 16;
const NAMES_MAX = 100;

const name = z.string().min(1).max(200);

/** Refuses plain http: an attacker who changes the answer of this address can sign tokens. */
const isKeyAddress = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname));
};

const jwk = z
  .looseObject({ kid: name.optional() })
  .transform((key): Jwk => key)
  .superRefine((key, context) => {
    const read = readPublicKey(key);
    if ('flaw' in read) context.addIssue({ code: 'custom', message: read.flaw });
  });

const issuer = z
  .strictObject({
    issuer: name,
    audience: z.union([name.transform((one) => [one]), z.array(name).min(1).max(NAMES_MAX)]),
    jwksUrl: z.string().refine(isKeyAddress, 'must be a https address, or http on the loopback address').optional(),
    jwks: z.strictObject({ keys: z.array(jwk).min(1).max(NAMES_MAX) }).optional(),
    algorithms: z
      .array(z.enum(PUBLIC_ALGORITHMS))
      .min(1)
      .default([...PUBLIC_ALGORITHMS]),
    rolesClaim: name.default('roles'),
    roles: z.record(name, z.enum(ROLES)).default({}),
    subjectPrefix: z
      .string()
      .regex(/^[!-~]{0,63}$/, { error: must('at most 63 visible ASCII characters') })
      .optional(),
  })
  .refine(({ jwksUrl, jwks }) => (jwksUrl === undefined) !== (jwks === undefined), {
    error: 'must have either jwksUrl or jwks',
  });

/** An identity provider whose tokens are accepted. */
export type Issuer = z.infer<typeof issuer>;

const issuers = z
  .array(issuer)
  .max(ISSUERS_MAX)
  .superRefine((list, context) => {
    for (const [index, { issuer: one, subjectPrefix: prefix }] of list.entries()) {
      const add = (field: string, message: string): void =>
        context.addIssue({ code: 'custom', path: [index, field], message });
      if (list.findIndex((other) => other.issuer === one) !== index) add('issuer', 'is listed twice');
      // Two providers may give the same name to two people, so the operator must say which providers share their users.
      if (list.length > 1 && prefix === undefined) {
        add(
          'subjectPrefix',
          'is missing: if there are several issuers, each needs one. Issuers with the same users share one.',
        );
      }
      const mixed = list.some(({ subjectPrefix: other }) => other !== prefix && other?.startsWith(prefix ?? ''));
      if (prefix !== undefined && mixed)
        add(
          'subjectPrefix',
          'must not begin with the prefix of another issuer, or be the beginning of one, unless both are equal',
        );
    }
  });

/**
 * @param text a JSON list, or empty
 * @throws Error with one sentence for each mistake
 */
export function readIssuers(text: string): readonly Issuer[] {
  if (text === '') return [];
  const json = parseJson(text, 'The list');
  if ('error' in json) throw new Error(json.error);
  const read = issuers.safeParse(json.value, { error: plainError });
  if (read.success) return read.data;
  throw new Error(fieldSentences(fieldErrors(read.error)));
}
