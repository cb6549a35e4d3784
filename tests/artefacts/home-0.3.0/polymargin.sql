BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0020');
CREATE TABLE aliases (
	model_id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	version_id VARCHAR(32) NOT NULL, 
	revision INTEGER NOT NULL, 
	PRIMARY KEY (model_id, name), 
	FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE, 
	FOREIGN KEY(version_id) REFERENCES model_versions (id) ON DELETE CASCADE
);
INSERT INTO "aliases" VALUES('18eb29ae7e0dc681c59d2339034fa4bc','production','18eb29ae7e1d6a7daea7f92ee5ee56d4',1);
CREATE TABLE answer_counts (
	version_id VARCHAR(32) NOT NULL, 
	day INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	place INTEGER NOT NULL, 
	n BIGINT NOT NULL, 
	PRIMARY KEY (version_id, day, kind, place), 
	FOREIGN KEY(version_id) REFERENCES model_versions (id) ON DELETE CASCADE
);
INSERT INTO "answer_counts" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4',20782,'label',0,1);
INSERT INTO "answer_counts" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4',20782,'score',0,1);
INSERT INTO "answer_counts" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad',20782,'label',1,1);
INSERT INTO "answer_counts" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad',20782,'score',1,1);
INSERT INTO "answer_counts" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd',20782,'label',0,1);
INSERT INTO "answer_counts" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd',20782,'score',0,1);
CREATE TABLE audit (
	id VARCHAR(32) NOT NULL, 
	at DOUBLE NOT NULL, 
	workspace VARCHAR(128) NOT NULL, 
	key_id VARCHAR(32) NOT NULL, 
	"key" VARCHAR(128) NOT NULL, 
	method VARCHAR(16) NOT NULL, 
	route VARCHAR(255) NOT NULL, 
	path VARCHAR(255) NOT NULL, 
	request_id VARCHAR(64), 
	address VARCHAR(255), 
	what VARCHAR(32), 
	thing_id VARCHAR(32), 
	name VARCHAR(255), 
	"before" JSON, 
	"after" JSON, 
	PRIMARY KEY (id)
);
INSERT INTO "audit" VALUES('18eb29a1a6debbccddd157c26e7d6b39',1.79557465071100282667e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/datasets','/api/v1/datasets','c5d4a78e1c16c5443d1e6371b768ff87','testclient','dataset','18eb29a1a4013b9bc40e0ed62725295f','letters',NULL,'{"name": "letters", "kind": null, "format": "svmlight", "sha256": "26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29a1a7635d82649c6dc66aae95a2',1.79557465071200871463e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/datasets','/api/v1/datasets','c5d4a78e1c16c5443d1e6371b768ff87','testclient','job','18eb29a1a6a71e7f1105f4d3a86d8dc7',NULL,NULL,'{"kind": "import", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29a7b5b5a8fc5ff4ac0f3f71ed08',1.79557467674598550799e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','8f7f7ebed0445f1b7aacedd0f96f52ee','testclient','job','18eb29a7b31e1629d1187a5a589982fa',NULL,NULL,'{"kind": "train", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29ae5d0030e5ebed805216fb2b7e',1.79557470531501173977e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/datasets','/api/v1/datasets','e2438171b08ead72dc54431453636987','testclient','dataset','18eb29ae5b17289b99b49f5cf16c75d1','foods',NULL,'{"name": "foods", "kind": null, "format": "jsonl", "sha256": "c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29ae5e078c6865c1dc43d36eeb05',1.79557470531601762772e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/datasets','/api/v1/datasets','e2438171b08ead72dc54431453636987','testclient','job','18eb29ae5cf3b164c895956c0fe5ec81',NULL,NULL,'{"kind": "import", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29ae6b442747e154b77e5e95c249',1.7955747055379838944e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','246a68ac59d29523c6a35198d97f9054','testclient','job','18eb29ae6b0f3f79554212f624868f3b',NULL,NULL,'{"kind": "train", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29ae826d8fb5bc5a03a48b873933',1.79557470593500423427e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/datasets','/api/v1/datasets','10eb3b8e2a0e7adc860e4991acf5035a','testclient','dataset','18eb29ae81be4ee7b1742850cf59b6f6','shapes',NULL,'{"name": "shapes", "kind": null, "format": "csv", "sha256": "9aac66c5ef10c7c29c8d8bd38914ee95d3eb89f8c4e6c3932d2eb329c62a79c6", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29ae82f88fdc3d4ec723e88bfe9b',1.79557470593601012235e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/datasets','/api/v1/datasets','10eb3b8e2a0e7adc860e4991acf5035a','testclient','job','18eb29ae82629864354549008d8a650a',NULL,NULL,'{"kind": "import", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29b0bf623321074173058d4d68c0',1.79557471553901576996e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','2aab67e8e61f73b60d4d6d84ecb2b166','testclient','job','18eb29b0be61dda62534fb105a293b2f',NULL,NULL,'{"kind": "train", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29b0ef3a77266e449ddd21d4e381',1.795574716341988802e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/hierarchies','/api/v1/hierarchies','b2c91336ff240af8c224116bc54e463b','testclient','hierarchy','18eb29b0d61b3590a3c5c3e29f165c8d','tree',NULL,'{"name": "tree", "format": "csv", "sha256": "e80db9ac0d125499594cf55f318c58152ba010b53f089d280c0b668847492929", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29b0f4a0fa9249841821752e754f',1.79557471643199014661e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','b34951475f3fa1d614ec938c22f33c80','testclient','job','18eb29b0f298c4eb1a86c239a643fc3f',NULL,NULL,'{"kind": "train", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29b0f4a98bb9e2496fff7de5447a',1.79557471643299603456e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','b34951475f3fa1d614ec938c22f33c80','testclient','job','18eb29b0f298c4eb1a86c239a643fc3f',NULL,'{"hierarchy_id": null}','{"hierarchy_id": "18eb29b0d61b3590a3c5c3e29f165c8d"}');
INSERT INTO "audit" VALUES('18eb29c20363f526e9f16c53af75ef65',1.79557478969500064849e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','PUT','/api/v1/models/{ref}/aliases/{alias}','/api/v1/models/foods/aliases/production','7b44cab432115209ddef8314e100aacb','testclient','model','18eb29ae7e0dc681c59d2339034fa4bc','foods','{"alias production": null}','{"alias production": 1}');
INSERT INTO "audit" VALUES('18eb29c204fee41625c51bb39de2bfc0',1.7955747897209911346e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','PUT','/api/v1/models/{ref}/retention','/api/v1/models/foods/retention','8b069e247690d9467ef5b42e51cc7983','testclient','model','18eb29ae7e0dc681c59d2339034fa4bc','foods','{"keep_last": null}','{"keep_last": 3}');
INSERT INTO "audit" VALUES('18eb29c20883029718a17b16b0e237a3',1.79557478978101921077e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','PATCH','/api/v1/models/{ref}/versions/{number}','/api/v1/models/foods/versions/1','26ce1fc1ebdf34e7b97670f2e8246088','testclient','version','18eb29ae7e1d6a7daea7f92ee5ee56d4',NULL,'{"tags": null, "notes": null, "revision": 1}','{"tags": {"by": "hand"}, "notes": "the first", "revision": 2}');
INSERT INTO "audit" VALUES('18eb29c20b6106d0d079dc8191b6a192',1.7955747898290171623e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','904db0f7b30be41c842e74a8f37e82d2','testclient','job','18eb29c20a721658cf3a63c8bc32c6e4',NULL,NULL,'{"kind": "evaluate", "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29c25df47145584c6093bcd69071',1.79557479121400260929e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/models/{ref}/feedback','/api/v1/models/foods/feedback','614eac82f7ccda82b97f79fc7afdf892','testclient','feedback','18eb29c25d8263fd31fec1e54c986f21',NULL,NULL,'{"number": 1, "workspace": "default"}');
INSERT INTO "audit" VALUES('18eb29c26198873cc0a28478ae4a4ba7',1.79557479127499604225e+09,'default','18eb29a18c81092ff1333f491c64b79d','the-admin','POST','/api/v1/jobs','/api/v1/jobs','2f77273abec4af6027f52950b96c861d','testclient','job','18eb29c25f91ad2c6f615c21f9b5078c',NULL,NULL,'{"kind": "train", "workspace": "default"}');
CREATE TABLE checkpoints (
	job_id VARCHAR(32) NOT NULL, 
	attempt INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	seconds DOUBLE NOT NULL, 
	path VARCHAR(255) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job_id), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "checkpoints" VALUES('18eb29a7b31e1629d1187a5a589982fa',1,0,2.01687339240006622284e+01,'jobs/18eb29a7b31e1629d1187a5a589982fa/1-0-0','700b60ccc012979570e322676c0fc711b221ada2da8249ea30d41de2ec9d5859');
INSERT INTO "checkpoints" VALUES('18eb29b0f298c4eb1a86c239a643fc3f',1,0,4.18127496920005796692e+01,'jobs/18eb29b0f298c4eb1a86c239a643fc3f/1-0-0','ba889f390652f4c16922465492d0bacd06dffdde6539904eb52475ad3dff31e0');
CREATE TABLE dataset_versions (
	dataset_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	job_id VARCHAR(32), 
	sha256 VARCHAR(64) NOT NULL, 
	path VARCHAR(255) NOT NULL, 
	n_rows BIGINT NOT NULL, 
	n_train BIGINT NOT NULL, 
	statistics JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (dataset_id, number), 
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE CASCADE
);
INSERT INTO "dataset_versions" VALUES('18eb29a1a4013b9bc40e0ed62725295f',1,'18eb29a1a6a71e7f1105f4d3a86d8dc7','26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564','datasets/18eb29a1a4013b9bc40e0ed62725295f/arrays-1',24,24,'{"n_rows": 24, "n_train": 24, "n_test": 0, "n_validation": 0, "n_classes": 3, "n_features": 6, "nnz": 48, "empty_rows": 0, "weights": null, "labels_per_row": null, "lengths": {"least": 2, "median": 2.0, "most": 2}, "repetitions": {"duplicates": 21, "conflicting": 0, "test_in_train": 0, "validation_in_train": 0}, "warnings": [{"code": "duplicates", "detail": "21 rows (88%) repeat an earlier row; rows held out at random will repeat rows that were trained on"}], "columns": null, "classes": [{"label": "a", "train": 8, "test": 0, "validation": 0}, {"label": "b", "train": 8, "test": 0, "validation": 0}, {"label": "c", "train": 8, "test": 0, "validation": 0}], "n_test_only_labels": 0, "test_only_labels": []}',1.79557467662399864198e+09);
INSERT INTO "dataset_versions" VALUES('18eb29ae5b17289b99b49f5cf16c75d1',1,'18eb29ae5cf3b164c895956c0fe5ec81','c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e','datasets/18eb29ae5b17289b99b49f5cf16c75d1/arrays-1',24,24,'{"n_rows": 24, "n_train": 24, "n_test": 0, "n_validation": 0, "n_classes": 3, "n_features": null, "nnz": null, "empty_rows": 0, "weights": null, "labels_per_row": null, "lengths": {"least": 13, "median": 15.0, "most": 15}, "repetitions": {"duplicates": 21, "conflicting": 0, "test_in_train": 0, "validation_in_train": 0}, "warnings": [{"code": "duplicates", "detail": "21 rows (88%) repeat an earlier row; rows held out at random will repeat rows that were trained on"}], "columns": null, "classes": [{"label": "fruit", "train": 8, "test": 0, "validation": 0}, {"label": "vegetable", "train": 8, "test": 0, "validation": 0}, {"label": "water", "train": 8, "test": 0, "validation": 0}], "n_test_only_labels": 0, "test_only_labels": []}',1.79557470547501897813e+09);
INSERT INTO "dataset_versions" VALUES('18eb29ae81be4ee7b1742850cf59b6f6',1,'18eb29ae82629864354549008d8a650a','9aac66c5ef10c7c29c8d8bd38914ee95d3eb89f8c4e6c3932d2eb329c62a79c6','datasets/18eb29ae81be4ee7b1742850cf59b6f6/arrays-1',20,20,'{"n_rows": 20, "n_train": 20, "n_test": 0, "n_validation": 0, "n_classes": 2, "n_features": 2, "nnz": 40, "empty_rows": 0, "weights": null, "labels_per_row": null, "lengths": {"least": 2, "median": 2.0, "most": 2}, "repetitions": {"duplicates": 18, "conflicting": 0, "test_in_train": 0, "validation_in_train": 0}, "warnings": [{"code": "duplicates", "detail": "18 rows (90%) repeat an earlier row; rows held out at random will repeat rows that were trained on"}], "columns": null, "classes": [{"label": "flat", "train": 10, "test": 0, "validation": 0}, {"label": "tall", "train": 10, "test": 0, "validation": 0}], "n_test_only_labels": 0, "test_only_labels": []}',1.79557471547999382022e+09);
CREATE TABLE "datasets" (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	format VARCHAR(16) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	path VARCHAR(255), 
	kind VARCHAR(16), 
	n_rows BIGINT, 
	n_train BIGINT, 
	n_classes BIGINT, 
	n_features BIGINT, 
	nnz BIGINT, 
	statistics JSON, 
	error JSON, 
	created_at DOUBLE NOT NULL, 
	workspace VARCHAR(128) NOT NULL, 
	owner VARCHAR(128), 
	version INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT datasets_workspace_name_key UNIQUE (workspace, name)
);
INSERT INTO "datasets" VALUES('18eb29a1a4013b9bc40e0ed62725295f','letters','svmlight','ready','26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564',288,'datasets/18eb29a1a4013b9bc40e0ed62725295f/arrays-1','sparse',24,24,3,6,48,'{"n_rows": 24, "n_train": 24, "n_test": 0, "n_validation": 0, "n_classes": 3, "n_features": 6, "nnz": 48, "empty_rows": 0, "weights": null, "labels_per_row": null, "lengths": {"least": 2, "median": 2.0, "most": 2}, "repetitions": {"duplicates": 21, "conflicting": 0, "test_in_train": 0, "validation_in_train": 0}, "warnings": [{"code": "duplicates", "detail": "21 rows (88%) repeat an earlier row; rows held out at random will repeat rows that were trained on"}], "columns": null, "classes": [{"label": "a", "train": 8, "test": 0, "validation": 0}, {"label": "b", "train": 8, "test": 0, "validation": 0}, {"label": "c", "train": 8, "test": 0, "validation": 0}], "n_test_only_labels": 0, "test_only_labels": []}','null',1.79557465068601822852e+09,'default','the-admin',1);
INSERT INTO "datasets" VALUES('18eb29ae5b17289b99b49f5cf16c75d1','foods','jsonl','ready','c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e',1120,'datasets/18eb29ae5b17289b99b49f5cf16c75d1/arrays-1','text',24,24,3,NULL,NULL,'{"n_rows": 24, "n_train": 24, "n_test": 0, "n_validation": 0, "n_classes": 3, "n_features": null, "nnz": null, "empty_rows": 0, "weights": null, "labels_per_row": null, "lengths": {"least": 13, "median": 15.0, "most": 15}, "repetitions": {"duplicates": 21, "conflicting": 0, "test_in_train": 0, "validation_in_train": 0}, "warnings": [{"code": "duplicates", "detail": "21 rows (88%) repeat an earlier row; rows held out at random will repeat rows that were trained on"}], "columns": null, "classes": [{"label": "fruit", "train": 8, "test": 0, "validation": 0}, {"label": "vegetable", "train": 8, "test": 0, "validation": 0}, {"label": "water", "train": 8, "test": 0, "validation": 0}], "n_test_only_labels": 0, "test_only_labels": []}','null',1.79557470529698729516e+09,'default','the-admin',1);
INSERT INTO "datasets" VALUES('18eb29ae81be4ee7b1742850cf59b6f6','shapes','csv','ready','9aac66c5ef10c7c29c8d8bd38914ee95d3eb89f8c4e6c3932d2eb329c62a79c6',199,'datasets/18eb29ae81be4ee7b1742850cf59b6f6/arrays-1','sparse',20,20,2,2,40,'{"n_rows": 20, "n_train": 20, "n_test": 0, "n_validation": 0, "n_classes": 2, "n_features": 2, "nnz": 40, "empty_rows": 0, "weights": null, "labels_per_row": null, "lengths": {"least": 2, "median": 2.0, "most": 2}, "repetitions": {"duplicates": 18, "conflicting": 0, "test_in_train": 0, "validation_in_train": 0}, "warnings": [{"code": "duplicates", "detail": "18 rows (90%) repeat an earlier row; rows held out at random will repeat rows that were trained on"}], "columns": null, "classes": [{"label": "flat", "train": 10, "test": 0, "validation": 0}, {"label": "tall", "train": 10, "test": 0, "validation": 0}], "n_test_only_labels": 0, "test_only_labels": []}','null',1.7955747059249863624e+09,'default','the-admin',1);
CREATE TABLE evaluation_confusions (
	evaluation_id VARCHAR(32) NOT NULL, 
	level INTEGER NOT NULL, 
	place INTEGER NOT NULL, 
	"true" VARCHAR NOT NULL, 
	predicted VARCHAR NOT NULL, 
	n_rows BIGINT NOT NULL, 
	PRIMARY KEY (evaluation_id, level, place), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluations (id) ON DELETE CASCADE
);
CREATE TABLE evaluation_labels (
	evaluation_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	label VARCHAR NOT NULL, 
	level INTEGER NOT NULL, 
	known BOOLEAN NOT NULL, 
	support BIGINT NOT NULL, 
	named BIGINT NOT NULL, 
	common BIGINT NOT NULL, 
	f1 DOUBLE NOT NULL, 
	PRIMARY KEY (evaluation_id, number), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluations (id) ON DELETE CASCADE
);
INSERT INTO "evaluation_labels" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',0,'fruit',0,1,2,2,2,1.0);
INSERT INTO "evaluation_labels" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',1,'vegetable',0,1,1,1,1,1.0);
INSERT INTO "evaluation_labels" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',2,'water',0,1,2,2,2,1.0);
CREATE TABLE evaluation_measures (
	evaluation_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	level INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	value DOUBLE NOT NULL, 
	low DOUBLE, 
	high DOUBLE, 
	PRIMARY KEY (evaluation_id, number), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluations (id) ON DELETE CASCADE
);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',0,0,'error',0.0,0.0,0.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',1,0,'accuracy@1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',2,0,'ndcg@1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',3,0,'precision@1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',4,0,'recall@1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',5,0,'psp@1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',6,0,'accuracy@3',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',7,0,'ndcg@3',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',8,0,'precision@3',3.33333333333333314829e-01,3.33333333333333314829e-01,3.33333333333333314829e-01);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',9,0,'recall@3',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',10,0,'psp@3',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',11,0,'accuracy@5',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',12,0,'ndcg@5',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',13,0,'precision@5',0.2,0.2,0.2);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',14,0,'recall@5',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',15,0,'psp@5',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',16,0,'accuracy@10',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',17,0,'ndcg@10',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',18,0,'precision@10',0.1,0.1,0.1);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',19,0,'recall@10',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',20,0,'psp@10',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',21,0,'mrr',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',22,0,'precision',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',23,0,'recall',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',24,0,'micro_f1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',25,0,'macro_f1',1.0,1.0,1.0);
INSERT INTO "evaluation_measures" VALUES('18eb29c20a721658cf3a63c8bc32c6e4',26,0,'weighted_f1',1.0,1.0,1.0);
CREATE TABLE "evaluations" (
	id VARCHAR(32) NOT NULL, 
	version_id VARCHAR(32) NOT NULL, 
	dataset_id VARCHAR(32), 
	dataset_sha256 VARCHAR(64) NOT NULL, 
	hierarchy_sha256 VARCHAR(64), 
	part VARCHAR(16) NOT NULL, 
	n_rows BIGINT NOT NULL, 
	n_labels BIGINT NOT NULL, 
	unknown_rows BIGINT NOT NULL, 
	unknown_labels BIGINT NOT NULL, 
	unknown_named JSON NOT NULL, 
	resamples BIGINT NOT NULL, 
	confidence DOUBLE NOT NULL, 
	seed BIGINT NOT NULL, 
	propensities JSON, 
	path VARCHAR(255) NOT NULL, 
	rows_sha256 VARCHAR(64) NOT NULL, 
	code_version VARCHAR(32) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	reliability JSON, 
	workspace VARCHAR(128) NOT NULL, 
	owner VARCHAR(128), 
	PRIMARY KEY (id), 
	FOREIGN KEY(version_id) REFERENCES model_versions (id) ON DELETE CASCADE, 
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE SET NULL
);
INSERT INTO "evaluations" VALUES('18eb29c20a721658cf3a63c8bc32c6e4','18eb29ae7e1d6a7daea7f92ee5ee56d4','18eb29ae5b17289b99b49f5cf16c75d1','c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e',NULL,'test',5,3,0,0,'[]',1000,0.95,0,'{"a": 0.55, "b": 1.5, "n_rows": 19}','evaluations/18eb29c20a721658cf3a63c8bc32c6e4.1','241f56a875add70a269e5f9c7691e8cfba5f7f1ced140a355e482aa39cc79d9f','0.3.0',1.79557479053800559038e+09,'null','default','the-admin');
CREATE TABLE feedback (
	id VARCHAR(32) NOT NULL, 
	workspace VARCHAR(128) NOT NULL, 
	owner VARCHAR(128), 
	model_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	answer VARCHAR(128), 
	instance JSON NOT NULL, 
	labels JSON NOT NULL, 
	note VARCHAR, 
	size_bytes BIGINT NOT NULL, 
	job_id VARCHAR(32), 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE
);
INSERT INTO "feedback" VALUES('18eb29c25d8263fd31fec1e54c986f21','default','the-admin','18eb29ae7e0dc681c59d2339034fa4bc',1,NULL,'{"text": "a yellow apple"}','["fruit"]',NULL,42,NULL,1.79557479121199107174e+09);
CREATE TABLE "hierarchies" (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	format VARCHAR(16) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	n_nodes BIGINT NOT NULL, 
	n_leaves BIGINT NOT NULL, 
	levels JSON NOT NULL, 
	created_at DOUBLE NOT NULL, 
	workspace VARCHAR(128) NOT NULL, 
	owner VARCHAR(128), report JSON, 
	PRIMARY KEY (id), 
	CONSTRAINT hierarchies_workspace_name_key UNIQUE (workspace, name)
);
INSERT INTO "hierarchies" VALUES('18eb29b0d61b3590a3c5c3e29f165c8d','tree','csv','e80db9ac0d125499594cf55f318c58152ba010b53f089d280c0b668847492929',4,3,'[2, 2]',1.79557471633901143074e+09,'default','the-admin','{"languages": {}, "n_deprecated": 0, "n_retired": 0, "n_dropped": 0, "dropped": [], "read_as": {"label": "child", "parent": "parent", "delimiter": "comma", "header": "1"}}');
CREATE TABLE hierarchy_nodes (
	hierarchy_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	parent INTEGER NOT NULL, 
	name VARCHAR(1000) NOT NULL, facts JSON, 
	PRIMARY KEY (hierarchy_id, number), 
	FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE CASCADE
);
INSERT INTO "hierarchy_nodes" VALUES('18eb29b0d61b3590a3c5c3e29f165c8d',0,-1,'a',NULL);
INSERT INTO "hierarchy_nodes" VALUES('18eb29b0d61b3590a3c5c3e29f165c8d',1,-1,'bc',NULL);
INSERT INTO "hierarchy_nodes" VALUES('18eb29b0d61b3590a3c5c3e29f165c8d',2,1,'b',NULL);
INSERT INTO "hierarchy_nodes" VALUES('18eb29b0d61b3590a3c5c3e29f165c8d',3,1,'c',NULL);
CREATE TABLE idempotency (
	key_id VARCHAR(32) NOT NULL, 
	token VARCHAR(255) NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	location VARCHAR(255) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (key_id, token)
);
CREATE TABLE job_log (
	id VARCHAR(32) NOT NULL, 
	job_id VARCHAR(32) NOT NULL, 
	at DOUBLE NOT NULL, 
	attempt INTEGER NOT NULL, 
	level VARCHAR(16) NOT NULL, 
	event VARCHAR(200) NOT NULL, 
	fields JSON NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
CREATE TABLE "jobs" (
	id VARCHAR(32) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	queue VARCHAR(64) NOT NULL, 
	dataset_id VARCHAR(32), 
	request JSON NOT NULL, 
	attempt INTEGER NOT NULL, 
	losses INTEGER NOT NULL, 
	worker VARCHAR(128), 
	lease_until DOUBLE, 
	rung_at DOUBLE, 
	progress JSON, 
	result JSON, 
	error JSON, 
	created_at DOUBLE NOT NULL, 
	started_at DOUBLE, 
	finished_at DOUBLE, 
	hierarchy_id VARCHAR(32), 
	workspace VARCHAR(128) NOT NULL, 
	owner VARCHAR(128), 
	priority INTEGER NOT NULL, 
	tags JSON, 
	time_limit DOUBLE, 
	queued_again VARCHAR(255), parent_id VARCHAR(32), 
	PRIMARY KEY (id), 
	CONSTRAINT jobs_hierarchy_id_fkey FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE SET NULL, 
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE SET NULL
);
INSERT INTO "jobs" VALUES('18eb29a1a6a71e7f1105f4d3a86d8dc7','import','succeeded','general','18eb29a1a4013b9bc40e0ed62725295f','{"kind": "import", "label_column": "label", "weight_column": null, "label_separator": null, "text_columns": [], "ignore_columns": [], "number_columns": [], "category_columns": [], "id_column": null, "infer_columns": false, "missing": "refuse", "missing_values": [], "encoding": "utf-8", "delimiter": null, "decimal": "point", "quotes": true, "format": "svmlight"}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.5, "phase": "saving"}','{"dataset": "18eb29a1a4013b9bc40e0ed62725295f", "dataset_version": 1}','null',1.79557465070098495486e+09,1.79557465089498901364e+09,1.79557467662601017953e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29a7b31e1629d1187a5a589982fa','train','succeeded','general','18eb29a1a4013b9bc40e0ed62725295f','{"dataset": "letters", "dataset_version": 1, "hierarchy": null, "model": "letters", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": null, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": true}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 1.0669116788053514e-05}','{"model": "letters", "version": 1, "versions": [1]}','null',1.79557467667899727818e+09,1.79557467677201628691e+09,1.79557470509300518037e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29ae5cf3b164c895956c0fe5ec81','import','succeeded','general','18eb29ae5b17289b99b49f5cf16c75d1','{"kind": "import", "label_column": "label", "weight_column": null, "label_separator": null, "text_columns": [], "ignore_columns": [], "number_columns": [], "category_columns": [], "id_column": null, "infer_columns": false, "missing": "refuse", "missing_values": [], "encoding": "utf-8", "delimiter": null, "decimal": "point", "quotes": true, "format": "jsonl"}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.5, "phase": "saving"}','{"dataset": "18eb29ae5b17289b99b49f5cf16c75d1", "dataset_version": 1}','null',1.79557470529799318315e+09,1.79557470535299181935e+09,1.79557470547598457336e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29ae6b0f3f79554212f624868f3b','train','succeeded','general','18eb29ae5b17289b99b49f5cf16c75d1','{"dataset": "foods", "dataset_version": 1, "hierarchy": null, "model": "foods", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": {"min_df": 2, "max_df": 1.0, "min_word_length": 2, "stop_words": [], "stem": null, "lemmas": [], "ngram_max": 1, "prefix": null, "char_ngrams": null, "max_features": null, "hash_features": null, "weighting": "tfidf", "bm25_k1": 1.2, "bm25_b": 0.75, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": true}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 8.638969766276074e-06}','{"model": "foods", "version": 1, "versions": [1]}','null',1.7955747055350065231e+09,1.79557470559298253055e+09,1.79557470587300515175e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29ae82629864354549008d8a650a','import','succeeded','general','18eb29ae81be4ee7b1742850cf59b6f6','{"kind": "import", "label_column": "label", "weight_column": null, "label_separator": null, "text_columns": [], "ignore_columns": [], "number_columns": [], "category_columns": [], "id_column": null, "infer_columns": false, "missing": "refuse", "missing_values": [], "encoding": "utf-8", "delimiter": null, "decimal": "point", "quotes": true, "format": "csv"}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.5, "phase": "saving"}','{"dataset": "18eb29ae81be4ee7b1742850cf59b6f6", "dataset_version": 1}','null',1.79557470592599201196e+09,1.79557470598501420014e+09,1.79557471548099970817e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29b0be61dda62534fb105a293b2f','train','succeeded','general','18eb29ae81be4ee7b1742850cf59b6f6','{"dataset": "shapes", "dataset_version": 1, "hierarchy": null, "model": "shapes", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": null, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": true}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 0.00024383981129314758}','{"model": "shapes", "version": 1, "versions": [1]}','null',1.7955747155269861222e+09,1.79557471558299064631e+09,1.79557471581899833683e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29b0f298c4eb1a86c239a643fc3f','train','succeeded','general','18eb29a1a4013b9bc40e0ed62725295f','{"dataset": "letters", "dataset_version": 1, "hierarchy": "tree", "model": "tree", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "orthogonal_transfer", "params": {}, "text": null, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": false}',1,0,'worker:1',NULL,NULL,'{"epoch": 2, "fraction": 1.0, "phase": "saving", "point": 0, "eta_seconds": null, "gap": 2.9036602182504015e-15}','{"model": "tree", "version": 1, "versions": [1]}','null',1.79557471641501188277e+09,1.79557471650698471064e+09,1.79557478957401967043e+09,'18eb29b0d61b3590a3c5c3e29f165c8d','default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29c20a721658cf3a63c8bc32c6e4','evaluate','succeeded','general','18eb29ae5b17289b99b49f5cf16c75d1','{"kind": "evaluate", "model": "foods", "version": 1, "alias": null, "dataset": "foods", "dataset_version": 1, "part": "test", "hierarchy": null, "resamples": 1000, "confidence": 0.95, "seed": 0, "propensity_a": 0.55, "propensity_b": 1.5}',1,0,'worker:1',NULL,NULL,'{"epoch": 0, "fraction": 0.8, "phase": "saving"}','{"model": "foods", "version": 1, "dataset": "18eb29ae5b17289b99b49f5cf16c75d1", "evaluation": "18eb29c20a721658cf3a63c8bc32c6e4"}','null',1.79557478981300449368e+09,1.79557478988699316976e+09,1.79557479055301237105e+09,NULL,'default','the-admin',0,'null',NULL,NULL,NULL);
INSERT INTO "jobs" VALUES('18eb29c25f91ad2c6f615c21f9b5078c','train','queued','general','18eb29ae5b17289b99b49f5cf16c75d1','{"dataset": "foods", "dataset_version": 1, "hierarchy": null, "model": "waiting", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": {"min_df": 2, "max_df": 1.0, "min_word_length": 2, "stop_words": [], "stem": null, "lemmas": [], "ngram_max": 1, "prefix": null, "char_ngrams": null, "max_features": null, "hash_features": null, "weighting": "tfidf", "bm25_k1": 1.2, "bm25_b": 0.75, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": false}',0,0,NULL,NULL,NULL,NULL,NULL,NULL,1.79557479124099922179e+09,NULL,NULL,NULL,'default','the-admin',-1,'{"a": "b"}',NULL,NULL,NULL);
CREATE TABLE "keys" (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	role VARCHAR(16) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	revoked_at DOUBLE, 
	expires_at DOUBLE, 
	last_used_at DOUBLE, 
	workspace VARCHAR(128) NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT keys_workspace_name_key UNIQUE (workspace, name), 
	CONSTRAINT keys_digest_key UNIQUE (digest)
);
INSERT INTO "keys" VALUES('18eb29a18c81092ff1333f491c64b79d','the-admin','admin','df971dd221ab65be8d0a605d4e7f3d9b8e4cd86cca2cecd8004ba876746583c7',1.79557465026200103758e+09,NULL,NULL,1.79557479296039509768e+09,'default');
CREATE TABLE metrics (
	version_id VARCHAR(32) NOT NULL, 
	part VARCHAR(16) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	value DOUBLE NOT NULL, 
	PRIMARY KEY (version_id, part, name), 
	FOREIGN KEY(version_id) REFERENCES model_versions (id) ON DELETE CASCADE
);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','train','majority_error',0.631578947368421);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','train','error',0.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','train','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','train','mrr',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','test','majority_error',0.8);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','test','error',0.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','test','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','test','mrr',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','train','majority_error',0.631578947368421);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','train','error',0.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','train','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','train','mrr',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','test','majority_error',0.8);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','test','error',0.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','test','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','test','mrr',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','train','majority_error',0.5);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','train','error',0.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','train','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','train','mrr',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','test','majority_error',0.5);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','test','error',0.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','test','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','test','mrr',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','majority_error',0.631578947368421);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','error',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','tree_loss',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','precision',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','recall',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','error_1',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','precision_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','recall_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','f1_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','macro_f1_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','weighted_f1_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','error_2',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','precision_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','recall_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','f1_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','macro_f1_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','train','weighted_f1_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','majority_error',0.8);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','error',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','tree_loss',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','precision',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','recall',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','micro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','macro_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','weighted_f1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','error_1',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','precision_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','recall_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','f1_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','macro_f1_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','weighted_f1_1',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','error_2',0.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','precision_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','recall_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','f1_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','macro_f1_2',1.0);
INSERT INTO "metrics" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','test','weighted_f1_2',1.0);
CREATE TABLE "model_versions" (
	id VARCHAR(32) NOT NULL, 
	model_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	job_id VARCHAR(32) NOT NULL, 
	dataset_id VARCHAR(32), 
	dataset_sha256 VARCHAR(64) NOT NULL, 
	solver VARCHAR(64) NOT NULL, 
	params JSON NOT NULL, 
	seed BIGINT NOT NULL, 
	request JSON NOT NULL, 
	code_version VARCHAR(32) NOT NULL, 
	n_classes BIGINT NOT NULL, 
	n_features BIGINT NOT NULL, 
	n_train BIGINT NOT NULL, 
	epochs INTEGER NOT NULL, 
	converged BOOLEAN NOT NULL, 
	primal DOUBLE, 
	dual DOUBLE, 
	gap DOUBLE, 
	violation DOUBLE, 
	seconds DOUBLE NOT NULL, 
	path VARCHAR(255) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	created_at DOUBLE NOT NULL, 
	point INTEGER DEFAULT '0' NOT NULL, 
	report JSON, 
	hierarchy_id VARCHAR(32), 
	hierarchy_sha256 VARCHAR(64), tags JSON, notes VARCHAR, revision INTEGER DEFAULT '1' NOT NULL, deleted_at DOUBLE, origin JSON, 
	PRIMARY KEY (id), 
	CONSTRAINT model_versions_model_id_number_key UNIQUE (model_id, number), 
	CONSTRAINT model_versions_job_id_point_key UNIQUE (job_id, point), 
	CONSTRAINT model_versions_hierarchy_id_fkey FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE SET NULL, 
	FOREIGN KEY(dataset_id) REFERENCES datasets (id) ON DELETE SET NULL, 
	FOREIGN KEY(model_id) REFERENCES models (id) ON DELETE CASCADE
);
INSERT INTO "model_versions" VALUES('18eb29ae4e32c3b71f7c16de9a97f2ad','18eb29ae4e119f103b7f67c0621751e8',1,'18eb29a7b31e1629d1187a5a589982fa','18eb29a1a4013b9bc40e0ed62725295f','26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564','weston_watkins','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "tol": 0.01, "max_epochs": 1000, "dtype": "auto"}',0,'{"dataset": "letters", "dataset_version": 1, "hierarchy": null, "model": "letters", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": null, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": true}','0.3.0',3,6,19,2,1,8.00008606910769692888e-01,8.0000007152551111389e-01,1.06691167880535142361e-05,2.98023224154508881156e-08,2.46408868380003696083e+01,'models/18eb29a7b31e1629d1187a5a589982fa.1','3e48672777d41bd6694988c256b1756f935ad2a48408c72d48f6b3513ddc7e50',3431,1795574705.08001,0,'{"nonzero_weights": 1.0, "nonzero_duals": 0.15789473684210525}',NULL,NULL,NULL,NULL,1,NULL,'null');
INSERT INTO "model_versions" VALUES('18eb29ae7e1d6a7daea7f92ee5ee56d4','18eb29ae7e0dc681c59d2339034fa4bc',1,'18eb29ae6b0f3f79554212f624868f3b','18eb29ae5b17289b99b49f5cf16c75d1','c2601218c027c527f50cf1d9a0415ab60f11f03649e3f38c9192a11857d8dc7e','weston_watkins','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "tol": 0.01, "max_epochs": 1000, "dtype": "auto"}',0,'{"dataset": "foods", "dataset_version": 1, "hierarchy": null, "model": "foods", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": {"min_df": 2, "max_df": 1.0, "min_word_length": 2, "stop_words": [], "stem": null, "lemmas": [], "ngram_max": 1, "prefix": null, "char_ngrams": null, "max_features": null, "hash_features": null, "weighting": "tfidf", "bm25_k1": 1.2, "bm25_b": 0.75, "sublinear_tf": true, "lowercase": true}, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": true}','0.3.0',3,9,19,2,1,1.00000861105650074023e+00,9.99999972012343807392e-01,8.63896976627607388922e-06,2.98023223876953191162e-08,1.52535500001249602064e-03,'models/18eb29ae6b0f3f79554212f624868f3b.1','c3db7e04701733d92242553022b53dcf70c2863b18316dc2d5a6d4708d1e4c44',4867,1.79557470586399292944e+09,0,'{"nonzero_weights": 1.0, "nonzero_duals": 0.15789473684210525}',NULL,NULL,'{"by": "hand"}','the first',2,NULL,'null');
INSERT INTO "model_versions" VALUES('18eb29b0cfb71933f1cf5cac5e4de9fd','18eb29b0cfab99bfd4fb3cea2f1ba8c3',1,'18eb29b0be61dda62534fb105a293b2f','18eb29ae81be4ee7b1742850cf59b6f6','9aac66c5ef10c7c29c8d8bd38914ee95d3eb89f8c4e6c3932d2eb329c62a79c6','weston_watkins','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "tol": 0.01, "max_epochs": 1000, "dtype": "auto"}',0,'{"dataset": "shapes", "dataset_version": 1, "hierarchy": null, "model": "shapes", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "weston_watkins", "params": {}, "text": null, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": true}','0.3.0',2,2,16,2,1,0.00781440595164902,7.81250048837640181931e-03,2.43839811293147578968e-04,6.4969062805177814129e-06,1.20287499885307624936e-03,'models/18eb29b0be61dda62534fb105a293b2f.1','2260c0145346b86c87804684983fee9cf870c78e6b77ced82b366afbbc97970c',3750,1.79557471581300354002e+09,0,'{"nonzero_weights": 1.0, "nonzero_duals": 0.5}',NULL,NULL,NULL,NULL,1,NULL,'null');
INSERT INTO "model_versions" VALUES('18eb29c1fafba8e1fcb9c1e8b80459e4','18eb29c1faf071354d7b3732e3f863c6',1,'18eb29b0f298c4eb1a86c239a643fc3f','18eb29a1a4013b9bc40e0ed62725295f','26d8319d38afbf5d4b578bcb6dc447ce8ba3a7b1d003caebccd1ab26961a0564','orthogonal_transfer','{"C": 1.0, "bias": 0.0, "memory_mb": null, "class_weight": null, "kernel": "linear", "degree": 3, "gamma": "scale", "coef0": 0.0, "tol": 0.01, "max_epochs": 1000, "alpha": 0.5, "K": [], "repair": "refuse", "algorithm": "ascent"}',0,'{"dataset": "letters", "dataset_version": 1, "hierarchy": "tree", "model": "tree", "seed": 0, "threads": 1, "test_fraction": 0.2, "stratify": "labels", "unseen_labels": "refuse", "missing_parents": "add", "columns": null, "kind": "train", "solver": "orthogonal_transfer", "params": {}, "text": null, "shards": null, "exchange": null, "path": null, "validation_rows": "leave_out", "warm_start": null, "keep_duals": false}','0.3.0',4,6,19,2,1,1.30000000000000359712e+00,1.29999999999999982236e+00,2.90366021825040146421e-15,2.22044604925031308084e-16,6.68045564240001112912e+01,'models/18eb29b0f298c4eb1a86c239a643fc3f.1','a2d7fdc7d2bb376b6bcb41f4a1bd0abd9d2f4494755e9b1fbc903a7b22e33023',2465,1.79557478955398344992e+09,0,'{"nonzero_weights": 0.8333333333333334, "nonzero_duals": 0.15625}','18eb29b0d61b3590a3c5c3e29f165c8d','e80db9ac0d125499594cf55f318c58152ba010b53f089d280c0b668847492929',NULL,NULL,1,NULL,'null');
CREATE TABLE "models" (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	created_at DOUBLE NOT NULL, 
	last_number INTEGER DEFAULT '0' NOT NULL, 
	keep_last INTEGER, 
	workspace VARCHAR(128) NOT NULL, 
	owner VARCHAR(128), 
	PRIMARY KEY (id), 
	CONSTRAINT models_workspace_name_key UNIQUE (workspace, name)
);
INSERT INTO "models" VALUES('18eb29ae4e119f103b7f67c0621751e8','letters',1.79557470504899024965e+09,1,NULL,'default','the-admin');
INSERT INTO "models" VALUES('18eb29ae7e0dc681c59d2339034fa4bc','foods',1.795574705853009224e+09,1,3,'default','the-admin');
INSERT INTO "models" VALUES('18eb29b0cfab99bfd4fb3cea2f1ba8c3','shapes',1.79557471581199765207e+09,1,NULL,'default','the-admin');
INSERT INTO "models" VALUES('18eb29c1faf071354d7b3732e3f863c6','tree',1.79557478955301785469e+09,1,NULL,'default','the-admin');
CREATE TABLE retired_labels (
	hierarchy_id VARCHAR(32) NOT NULL, 
	name VARCHAR(1000) NOT NULL, 
	facts JSON NOT NULL, 
	PRIMARY KEY (hierarchy_id, name), 
	FOREIGN KEY(hierarchy_id) REFERENCES hierarchies (id) ON DELETE CASCADE
);
CREATE TABLE sign_ins (
	digest VARCHAR(64) NOT NULL, 
	kind VARCHAR(8) NOT NULL, 
	key_id VARCHAR(32) NOT NULL, 
	expires_at DOUBLE NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE slots (
	queue VARCHAR(64) NOT NULL, 
	number INTEGER NOT NULL, 
	job_id VARCHAR(32), 
	attempt INTEGER, 
	rank INTEGER, 
	size INTEGER, 
	worker VARCHAR(128), 
	lease_until DOUBLE, 
	PRIMARY KEY (queue, number), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE SET NULL
);
CREATE TABLE steps (
	job_id VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	epoch INTEGER NOT NULL, 
	primal DOUBLE, 
	dual DOUBLE, 
	gap DOUBLE, 
	violation DOUBLE, 
	seconds DOUBLE NOT NULL, point INTEGER DEFAULT '0' NOT NULL, measures JSON, 
	PRIMARY KEY (job_id, number), 
	FOREIGN KEY(job_id) REFERENCES jobs (id) ON DELETE CASCADE
);
INSERT INTO "steps" VALUES('18eb29a7b31e1629d1187a5a589982fa',0,1,1,NULL,NULL,NULL,1.0,2.01687339240006622284e+01,0,'{}');
INSERT INTO "steps" VALUES('18eb29a7b31e1629d1187a5a589982fa',1,1,2,8.00008606910769692888e-01,8.0000007152551111389e-01,1.06691167880535142361e-05,2.98023224154508881156e-08,2.46408868380003696083e+01,0,'{}');
INSERT INTO "steps" VALUES('18eb29ae6b0f3f79554212f624868f3b',0,1,1,NULL,NULL,NULL,1.0,1.06645100004243431612e-03,0,'{}');
INSERT INTO "steps" VALUES('18eb29ae6b0f3f79554212f624868f3b',1,1,2,1.00000861105650074023e+00,9.99999972012343807392e-01,8.63896976627607388922e-06,2.98023223876953191162e-08,1.52535500001249602064e-03,0,'{}');
INSERT INTO "steps" VALUES('18eb29b0be61dda62534fb105a293b2f',0,1,1,NULL,NULL,NULL,1.21951219439506530761e+00,9.79441999334085267037e-04,0,'{}');
INSERT INTO "steps" VALUES('18eb29b0be61dda62534fb105a293b2f',1,1,2,0.00781440595164902,7.81250048837640181931e-03,2.43839811293147578968e-04,6.4969062805177814129e-06,1.20287499885307624936e-03,0,'{}');
INSERT INTO "steps" VALUES('18eb29b0f298c4eb1a86c239a643fc3f',0,1,1,NULL,NULL,NULL,1.0,4.18127496920005796692e+01,0,'{}');
INSERT INTO "steps" VALUES('18eb29b0f298c4eb1a86c239a643fc3f',1,1,2,1.30000000000000359712e+00,1.29999999999999982236e+00,2.90366021825040146421e-15,2.22044604925031308084e-16,6.68045564240001112912e+01,0,'{}');
CREATE TABLE workers (
	id VARCHAR(128) NOT NULL, 
	queue VARCHAR(64) NOT NULL, 
	processes INTEGER NOT NULL, 
	seen_at DOUBLE NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX ix_hierarchy_nodes_parent ON hierarchy_nodes (hierarchy_id, parent);
CREATE INDEX ix_model_versions_dataset_id ON model_versions (dataset_id);
CREATE INDEX ix_model_versions_hierarchy_id ON model_versions (hierarchy_id);
CREATE INDEX ix_slots_job_id ON slots (job_id);
CREATE INDEX ix_evaluations_dataset_id ON evaluations (dataset_id);
CREATE INDEX ix_evaluations_version_id ON evaluations (version_id);
CREATE INDEX ix_audit_at ON audit (at);
CREATE INDEX ix_audit_key_id ON audit (key_id);
CREATE INDEX ix_audit_thing_id ON audit (thing_id);
CREATE INDEX ix_audit_name ON audit (name);
CREATE INDEX ix_feedback_model ON feedback (model_id, id);
CREATE INDEX ix_feedback_job_id ON feedback (job_id);
CREATE INDEX ix_jobs_dataset_id ON jobs (dataset_id);
CREATE INDEX ix_jobs_state_lease ON jobs (state, lease_until);
CREATE INDEX ix_jobs_workspace_id ON jobs (workspace, id);
CREATE INDEX ix_jobs_hierarchy_id ON jobs (hierarchy_id);
CREATE INDEX ix_job_log_job_id_id ON job_log (job_id, id);
CREATE INDEX ix_jobs_parent_id ON jobs (parent_id);
CREATE INDEX ix_jobs_workspace_state_id ON jobs (workspace, state, id);
CREATE INDEX ix_jobs_queue_state_finished ON jobs (queue, state, finished_at);
COMMIT;
