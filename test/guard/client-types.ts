import openapiTS, { astToString } from 'openapi-typescript';
import { pathToFileURL } from 'node:url';
import { openapiOf } from '../../src/http/openapi.js';

/** The command that writes the types anew; a test compares them with `renderClientTypes()`. */
export const RENDER_COMMAND = 'npx tsx test/guard/client-types.ts > src/client/api-types.ts';

const HEADER = `// Made from the OpenAPI document of buyers: ${RENDER_COMMAND}

`;

/** What buyers send and get, as TypeScript. */
export async function renderClientTypes(): Promise<string> {
  const { paths, ...rest } = openapiOf('buyers');
  const ofBuyers = Object.entries(paths).filter(([, methods]) =>
    Object.values(methods).some(({ tags }) => (tags as readonly string[]).includes('buyers')),
  );
  const document = { ...rest, paths: Object.fromEntries(ofBuyers) } as unknown as Parameters<typeof openapiTS>[0];
  return HEADER + astToString(await openapiTS(document));
}

const isProgram = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href;
if (isProgram) process.stdout.write(await renderClientTypes());
