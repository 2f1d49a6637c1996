import { Duration, RemovalPolicy } from 'aws-cdk-lib'
import { AttributeType, Billing, ProjectionType, TableEncryptionV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb'
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3'
import { Construct } from 'constructs'
import { limits } from '../../lib/limits.ts'
import { uploadsPrefix } from '../../lib/store/keys.ts'
import { tableShape } from '../../lib/store/table.ts'

const text = (name: string) => ({ name, type: AttributeType.STRING })

/** The one table and the one bucket (DESIGN 4). Both outlive the stack: they hold what cannot be made again. */
export class Storage extends Construct {
  readonly table: TableV2
  readonly bucket: Bucket

  constructor(scope: Construct, id: string) {
    super(scope, id)
    this.table = new TableV2(this, 'Table', {
      partitionKey: text(tableShape.partition),
      sortKey: text(tableShape.sort),
      timeToLiveAttribute: tableShape.ttl,
      globalSecondaryIndexes: tableShape.indexes.map((index) => ({
        indexName: index.name,
        partitionKey: text(index.partition),
        sortKey: text(index.sort),
        projectionType: ProjectionType.KEYS_ONLY,
      })),
      billing: Billing.onDemand(),
      encryption: TableEncryptionV2.awsManagedKey(),
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      deletionProtection: true,
      removalPolicy: RemovalPolicy.RETAIN,
    })
    this.bucket = new Bucket(this, 'Bucket', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      versioned: true,
      lifecycleRules: [
        // What retention removed can be brought back for a month, and is then gone for good.
        {
          abortIncompleteMultipartUploadAfter: Duration.days(7),
          noncurrentVersionExpiration: Duration.days(30),
          expiredObjectDeleteMarker: true,
        },
        {
          prefix: uploadsPrefix,
          expiration: Duration.days(limits.uploadDays),
          noncurrentVersionExpiration: Duration.days(limits.uploadDays),
        },
      ],
      removalPolicy: RemovalPolicy.RETAIN,
    })
  }
}
