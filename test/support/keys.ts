import type { KeyPair } from '../../infra/local/doors/key-pair.ts'

/** The key pair of services that a test starts for itself. */
export const testKeys: KeyPair = {
  accessKeyId: 'TESTACCESSKEY0001',
  secretAccessKey: 'a-secret-of-the-tests-alone-0001',
}
