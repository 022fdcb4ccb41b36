import { z } from 'zod';
import { queryWhole } from '../../contract/fields.js';
import { problem, startPoll, text } from '../answer.js';
import { operatorRoute } from '../route.js';

const SECONDS_MAX = 30;
const SECONDS_DEFAULT = 10;

/**
 * Profiles this api process and returns a file for Chrome's developer tools. Writes each request to the audit log
 * before the profile begins.
 */
const profileOf = (kind: 'cpu' | 'heap', path: string, summary: string) =>
  operatorRoute({
    method: 'get',
    path,
    operationId: kind === 'cpu' ? 'profileCpu' : 'profileHeap',
    summary: `${summary} Only one profile at a time. It costs some percent of the CPU of the process.`,
    access: 'admin',
    query: z.strictObject({ seconds: queryWhole(1, SECONDS_MAX).default(SECONDS_DEFAULT) }),
    answers: { 200: { description: `the text of a .${kind}profile file`, schema: z.looseObject({}) } },
    problems: ['profile_running'],
    async handle({ req, res, userId, query: { seconds } }, { audit, profiler, lifecycle }) {
      if (req.method === 'HEAD') return text(200, 'profiled', '', 'application/json'); // Express serves HEAD as well
      const after = { kind, seconds };
      await audit.append({ actor: userId, action: 'api.profiled', subject: 'program:api', before: null, after });
      const { signal } = startPoll(res, lifecycle);
      const profile = await profiler.profile(kind, seconds * 1000, signal);
      if (profile === null) return problem('profile_running');
      const name = `attachment; filename="api-${process.pid}.${kind}profile"`;
      const headers = ['Cache-Control', 'no-store', 'Content-Disposition', name];
      return text(200, 'profiled', profile, 'application/json', headers);
    },
  });

export const profileCpu = profileOf('cpu', '/debug/profile', 'Where the CPU time of this api goes.');
export const profileHeap = profileOf('heap', '/debug/heap', 'Which code allocates the memory that this api keeps.');
