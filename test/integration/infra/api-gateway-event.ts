/** A request as API Gateway's REST API gives it to a Lambda proxy integration (payload format 1.0). */
export const proxyEvent = (
  method: string,
  path: string,
  request: { headers?: Record<string, string>; body?: string; base64?: boolean } = {},
) => {
  const headers: Record<string, string> = {
    Host: 'abcdefghij.execute-api.us-east-1.amazonaws.com',
    'X-Forwarded-Proto': 'https',
    ...request.headers,
  }
  return {
    resource: '/{proxy+}',
    path,
    httpMethod: method,
    headers,
    multiValueHeaders: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
    queryStringParameters: null,
    multiValueQueryStringParameters: null,
    pathParameters: { proxy: path.slice(1) },
    stageVariables: null,
    requestContext: {
      resourceId: 'abc123',
      resourcePath: '/{proxy+}',
      httpMethod: method,
      path: `/api${path}`,
      accountId: '000000000000',
      apiId: 'abcdefghij',
      stage: 'api',
      domainName: headers.Host,
      protocol: 'HTTP/1.1',
      requestId: '11111111-2222-3333-4444-555555555555',
      identity: { sourceIp: '192.0.2.1', userAgent: 'test' },
    },
    body: request.body ?? null,
    isBase64Encoded: request.base64 ?? false,
  }
}
