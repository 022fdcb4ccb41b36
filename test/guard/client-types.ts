import openapiTS, { astToString } from 'openapi-typescript';
import { openapiOf } from '../../src/http/openapi.js';

const HEADER = `// Made from the OpenAPI document of buyers: npm run generate

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
